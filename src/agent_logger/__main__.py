from agent_logger.cli import main

main()
