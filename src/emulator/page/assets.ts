/** The style and the script that the page contains. */

export const style = /* css */ `
:root {
  color-scheme: light dark;
  --bg: light-dark(#f4f6f5, #0d1110);
  --panel: light-dark(#fff, #141918);
  --hover: light-dark(#f1f5f3, #1b2220);
  --line: light-dark(#e1e6e3, #28302d);
  --strong: light-dark(#c4ccc8, #3d4843);
  --ink: light-dark(#16201c, #e4ebe8);
  --muted: light-dark(#56635e, #9aa7a2);
  --accent: light-dark(#0f766e, #2dd4bf);
  --accent-soft: light-dark(#e2f3f0, #10302b);
  --on-accent: light-dark(#fff, #04211d);
  --soft: color-mix(in srgb, currentColor 12%, transparent);
}
* { box-sizing: border-box; margin: 0; padding: 0; }
body {
  display: grid; grid-template: auto minmax(0, 1fr) / minmax(0, 1fr); height: 100dvh;
  background: var(--bg); color: var(--ink);
  font: 14px / 1.45 system-ui, sans-serif; overflow-wrap: anywhere;
}
h1, h2, h3 { font-size: 14px; font-weight: 600; }
ol, ul { list-style: none; }
a { color: var(--accent); }
code, pre, textarea, dl, time, .id { font: 12.5px / 1.45 ui-monospace, Menlo, Consolas, monospace; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
.muted, .about, .id, .empty, .tab, dt, label { color: var(--muted); }
.bad, .button.bad { color: light-dark(#b3261e, #ffaaa3); }
.good { color: light-dark(#17663a, #86e0a8); }
.neutral, .request { color: light-dark(#1c54c7, #9dbdff); }
.callback { color: light-dark(#6a35c4, #c9b4ff); }
.warning, .waiting { color: light-dark(#8a4b08, #f8cf6a); }

header, nav, .pane-head, .tabs, .buttons, h3 { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; }
header { gap: 6px 14px; padding: 8px 16px; background: var(--panel); border-bottom: 1px solid var(--line); }
h1 span { color: var(--accent); font-size: 18px; }
noscript { padding: 8px 16px; }
#filter { flex: 1 1 220px; }
main { display: grid; grid-template-columns: minmax(220px, 290px) minmax(0, 1fr); gap: 12px; padding: 12px; min-height: 0; }
main:has(#details:not([hidden])) { grid-template-columns: minmax(200px, 240px) minmax(300px, 1fr) minmax(0, 1.4fr); }
.pane {
  display: flex; flex-direction: column; min-height: 0; overflow: hidden;
  background: var(--panel); border: 1px solid var(--line); border-radius: 12px;
}
.pane-head { gap: 6px 8px; padding: 8px 14px; border-bottom: 1px solid var(--line); }
.tabs { gap: 2px; }
.list { overflow: auto; }
.details { padding: 14px 16px 20px; }
[hidden] { display: none !important; }
.details .close + * { margin-top: 0; }
.details > * + *, #injected > * + * { margin-top: 12px; }
.details h2 { font-size: 16px; }
.details h3 { margin-top: 22px; }
.details h3 + *, .details .muted + dl, pre + dl { margin-top: 8px; }
.close { float: right; padding: 2px 8px; color: var(--muted); text-decoration: none; }

.button, input, select, textarea {
  min-height: 32px; padding: 4px 11px; border: 1px solid var(--strong); border-radius: 8px;
  background: var(--panel); color: var(--ink); font: inherit;
}
.button { display: inline-flex; align-items: center; gap: 6px; text-decoration: none; white-space: nowrap; cursor: pointer; }
.button:hover, .row:hover { background: var(--hover); }
nav .button[aria-current="true"] { border-color: var(--accent); color: var(--accent); }
.narrow { display: none; }
.button.primary { border-color: var(--accent); background: var(--accent); color: var(--on-accent); }
.button.quiet { border-color: transparent; }
.button.small { min-height: 24px; padding: 0 7px; font-size: 12.5px; font-weight: 400; }
input, select, textarea { width: 100%; }
.fields, .fields label { display: grid; gap: 4px; }
.fields { gap: 12px; }
.inline { display: inline-flex; align-items: center; gap: 6px; }
.tab { padding: 2px 6px; border-radius: 6px; font-size: 13px; text-decoration: none; }
.tab[aria-current="true"] { background: var(--accent-soft); color: var(--accent); }
.tab.end { margin-left: auto; }
.badge { padding: 0 7px; border-radius: 9px; background: var(--accent-soft); color: var(--accent); font-size: 11.5px; }

.row {
  display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 1px 10px; padding: 6px 14px;
  border-bottom: 1px solid var(--line); color: inherit; text-decoration: none;
}
.event { grid-template-columns: 24px minmax(0, 1fr) auto; }
.about { grid-column: 1 / -1; font-size: 12.5px; }
.event .about { grid-column: 2 / -1; }
.row[aria-current="true"] { background: var(--accent-soft); box-shadow: inset 3px 0 0 var(--accent); }
.links { border: 1px solid var(--line); border-bottom: 0; border-radius: 8px; overflow: hidden; }
.glyph {
  display: grid; place-items: center; grid-row: 1 / 3; width: 24px; height: 24px; margin-top: 7px;
  border-radius: 50%; background: var(--soft);
}
.outcome { display: inline-flex; align-items: baseline; gap: 9px; }
.row .outcome { flex-direction: row-reverse; }
.status, .notice { background: var(--soft); border-radius: 6px; }
.status { min-width: 38px; padding: 0 8px; font-size: 12.5px; line-height: 20px; text-align: center; }
.notice { padding: 8px 11px; }
.dots { display: inline-flex; align-items: center; gap: 3px; height: 20px; }
.dots i { width: 8px; height: 8px; border: 1.5px solid var(--strong); border-radius: 50%; }
.dots i.failed { border-color: #d93a30; background: #d93a30; }
#outcome:not(:empty) {
  position: fixed; bottom: 24px; left: 50%; translate: -50%; max-width: 90vw; padding: 8px 14px;
  border: 1px solid; border-radius: 8px; background: var(--panel);
}
.empty, .guide { padding: 24px; text-align: center; }
.guide { max-width: 640px; margin: auto; text-align: left; }
.guide > * + * { margin-top: 12px; }

pre, dl { border: 1px solid var(--line); border-radius: 8px; }
pre { padding: 10px 12px; background: var(--hover); white-space: pre-wrap; }
dl { display: grid; grid-template-columns: fit-content(55%) minmax(0, 1fr); }
dl div { display: grid; grid-column: 1 / -1; grid-template-columns: subgrid; gap: 14px; padding: 4px 12px; }
dl div + div { border-top: 1px solid var(--line); }
dl:empty::before { content: "None."; padding: 4px 12px; color: var(--muted); }

@media (max-width: 1100px) {
  main:has(#details:not([hidden])) { grid-template-columns: minmax(280px, 2fr) minmax(0, 3fr); }
  :has(#details:not([hidden])) > #rail { display: none; }
}
@media (max-width: 760px) {
  header { gap: 8px; padding: 8px 12px; }
  header code { display: none; }
  #filter { order: 1; flex-basis: 100%; }
  header .quiet { min-height: 0; margin-left: auto; padding: 0 4px; }
  nav { flex: 1; gap: 4px; }
  nav .button { flex: auto; justify-content: center; padding: 2px 6px; font-size: 13px; }
  #rail h2, #events h2 { display: none; }
  .narrow { display: inline-flex; }
  main, main:has(#details:not([hidden])) { display: flex; flex-direction: column; padding: 0; }
  .pane { flex: 1; border-width: 0; border-radius: 0; }
  #rail[data-open="false"], #rail[data-open="true"] ~ #events, main:has(#details:not([hidden])) > :not(#details) { display: none; }
}
`

/** Follows links and posts forms without leaving the page, and renders again what the server says has changed. */
export const script = /* js */ `
const connection = document.getElementById('connection')
const outcome = document.getElementById('outcome')
const box = document.querySelector('[name=q]')
let isRefreshing = false, isStale = false, hiding, seen

async function refresh() {
  isStale = true
  if (isRefreshing) return
  isRefreshing = true
  try {
    while (isStale) {
      isStale = false
      const answer = await fetch(location.href)
      if (!answer.ok) throw new Error(answer.status)
      show(new DOMParser().parseFromString(await answer.text(), 'text/html'))
    }
    connected(true)
  } catch {
    connected(false)
    seen = undefined
  }
  isRefreshing = false
}

/** Replaces what has changed, and keeps the focus, the places in the lists, and a form that is open with what is typed. */
function show(next) {
  const focused = document.activeElement?.id
  const places = [...document.querySelectorAll('.list')].map((list) => [list.id, list.scrollTop, list.scrollHeight])
  for (const live of document.querySelectorAll('[data-live]')) {
    const form = live.querySelector('form.fields')
    const other = next.getElementById(live.id)
    // The live parts within this one come next, each by itself.
    if (form && next.getElementById(form.id)) continue
    if (other && !live.isEqualNode(other)) live.replaceWith(other)
  }
  if (document.activeElement !== box) box.value = next.querySelector('[name=q]').value
  for (const [id, top, height] of places) {
    const list = document.getElementById(id)
    // The newest come first: what a person looks at moves down with them.
    if (list && top > 0) list.scrollTop = top + list.scrollHeight - height
  }
  if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus()
}

function report(text, kind) {
  outcome.textContent = text
  outcome.className = kind
  clearTimeout(hiding)
  hiding = setTimeout(() => { outcome.textContent = '' }, 4000)
}

function connected(isLive) {
  connection.textContent = isLive ? 'Live' : 'Not connected'
  connection.className = isLive ? 'status good' : 'status bad'
  connection.title = isLive ? '' : 'The emulator has ended, or was restarted: open the address that it printed.'
}

/** Asks whether something has changed. A hidden page does not. */
async function follow() {
  const version = document.hidden ? seen : await fetch('version').then((answer) => answer.ok && answer.text()).catch(() => false)
  if (version === false) connected(false)
  else if (version !== seen) refresh()
  seen = version
  setTimeout(follow, 300)
}

async function copy(href) {
  const text = fetch(href).then(async (answer) => new Blob([await answer.text()], { type: 'text/plain' }))
  await navigator.clipboard.write([new ClipboardItem({ 'text/plain': text })])
  report('Copied', 'good')
}

addEventListener('popstate', refresh)
addEventListener('click', (event) => {
  const link = event.target.closest('a[data-copy], a[href^="?"]')
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return
  event.preventDefault()
  if ('copy' in link.dataset) return copy(link.href).catch(() => report('The browser did not allow to copy.', 'bad'))
  history.pushState(null, '', link.getAttribute('href'))
  refresh()
})
addEventListener('keydown', (event) => {
  if (event.key === 'Escape') document.querySelector('#details:not([hidden]) .close')?.click()
})
addEventListener('input', ({ target }) => {
  if (target !== box) return
  const query = new URLSearchParams(location.search)
  query.set('q', box.value)
  history.replaceState(null, '', '?' + query)
  refresh()
})
addEventListener('submit', async (event) => {
  event.preventDefault()
  const form = event.target
  if (form.id === 'filter') return
  const given = [...new FormData(form)].filter(([, value]) => value !== '')
  try {
    const answer = await fetch(form.action, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(Object.fromEntries(given)),
    })
    const { message = 'Done' } = await answer.json()
    report(message, answer.ok ? 'good' : 'bad')
  } catch {
    report('The emulator does not answer. Is it still running?', 'bad')
  }
  refresh()
})
follow()
`
