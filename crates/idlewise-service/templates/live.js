// Shows what has changed, without a reload.
setInterval(async () => {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok) return;
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
    const main = document.querySelector("main");
    // Whoever reads or selects something there is not disturbed by what stays the same.
    if (next && next.innerHTML !== main.innerHTML && getSelection().isCollapsed) {
      const link = main.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      main.replaceChildren(...next.childNodes);
      if (link) main.querySelector(`a[href="${CSS.escape(link)}"]`)?.focus();
    }
  } catch { /* The service is being started again. */ }
}, 10000);
