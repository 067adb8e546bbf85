// What is being said, while it grows: what was there stays there, so that a selection in it does, too.
export function say(place, html) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html; // made and escaped by the server
  renew(place, fresh.content);
}

function renew(old, fresh) {
  const [was, now] = [[...old.childNodes], [...fresh.childNodes]];
  now.forEach((node, number) => {
    const known = was[number];
    if (!known) old.append(node);
    else if (known.nodeName !== node.nodeName || known.className !== node.className) known.replaceWith(node);
    else if (known.nodeType === Node.TEXT_NODE) { if (known.data !== node.data) known.data = node.data; }
    else if (!known.isEqualNode(node)) renew(known, node);
  });
  for (const gone of was.slice(now.length)) gone.remove();
}
