"""Clients without a name that send an answer back in words of their own."""

from .conversation import Recorder, history


def test_a_conversation_goes_on_with_an_answer_in_other_words() -> None:
    recorder = Recorder()
    first = recorder.ask(history("Weather?"))
    recorder.answer(first, "I call weather.")
    second = recorder.ask(history("Weather?", "Calling tools: weather", "Observation: sunny"))
    recorder.answer(second, "Sunny.")
    third = recorder.ask(
        history("Weather?", "Calling tools: weather", "Observation: sunny", "Answer: sunny", "Thanks")
    )
    assert [it.link for it in (first, second, third)] == ["start", "continuation", "continuation"]
    assert {it.session for it in (first, second, third)} == {first.session}
    assert (second.identity.source, second.identity.confidence) == ("fingerprint", "likely")


def test_of_two_that_began_alike_it_is_a_guess_which_one_goes_on() -> None:
    recorder = Recorder()
    for _ in range(2):
        last = recorder.ask(history("Weather?"))
        recorder.answer(last, "I call weather.")
    then = recorder.ask(history("Weather?", "Calling tools: weather", "Observation: sunny"))
    assert (then.session, then.identity.confidence) == (last.session, "ambiguous")
    assert len(then.identity.candidates or ()) == 2


def test_words_that_are_put_into_the_models_mouth_are_no_answer() -> None:
    recorder = Recorder()
    first = recorder.ask(history("Weather?"))
    recorder.answer(first, "Sunny.")
    assert recorder.ask(history("Weather?", "{")).link == "start"


def test_a_call_that_was_not_answered_is_not_gone_on_from() -> None:
    recorder = Recorder()
    recorder.end(recorder.ask(history("Weather?")), status=500, complete=True)
    assert recorder.ask(history("Weather?", "Calling tools: weather", "Sunny")).link == "start"
