// Markdown as elements. What comes out of marked is HTML that a model wrote: it is parsed by the sanitiser, in a document
// of its own, and only the elements of this list come into the page.
import {marked} from './marked.js'
import purify from './purify.js'
import {h, iconButton} from './dom.js'

const TAGS = `a b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img input kbd li mark ol p pre q s samp small span
  strong sub summary sup table tbody td tfoot th thead tr u ul var`.split(/\s+/)
const CONFIG = {
  ALLOWED_TAGS: TAGS,
  ALLOWED_ATTR: ['href', 'src', 'alt', 'title', 'class', 'align', 'start', 'type', 'checked', 'disabled', 'colspan', 'rowspan'],
  ALLOWED_URI_REGEXP: /^(https?:|mailto:|data:image\/(png|jpeg|gif|webp);|#|[^a-z]|[a-z+.-]+(?:[^a-z+.\-:]|$))/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  SANITIZE_DOM: true,
  RETURN_DOM_FRAGMENT: true,
}
const LANGUAGE = /^language-([a-z0-9+#.-]{1,30})$/i

function link(a) {
  const href = a.getAttribute('href') ?? ''
  let url
  try {
    url = new URL(href, location.href)
  } catch {}
  if (!/^(https?:|mailto:)/i.test(href) || !url) {
    a.removeAttribute('href')
    return
  }
  a.setAttribute('rel', 'noopener noreferrer nofollow')
  a.setAttribute('target', '_blank')
}

// Pictures of other places would tell them who reads this: they are links.
function picture(img) {
  const src = img.getAttribute('src') ?? ''
  if (/^data:image\//i.test(src)) return
  let url
  try {
    url = new URL(src, location.href)
  } catch {}
  if (url && url.origin === location.origin && /^https?:$/.test(url.protocol)) return
  const label = img.getAttribute('alt') || src
  const a = h('a', null, label)
  if (url && /^https?:$/.test(url.protocol)) a.setAttribute('href', url.href)
  img.replaceWith(a)
  link(a)
}

// Classes are ours: of what the text brought only the language of a code block is kept.
function classes(el) {
  const language = el.localName === 'code' ? LANGUAGE.exec(el.getAttribute('class') ?? '') : null
  if (language) el.setAttribute('class', language[0].toLowerCase())
  else el.removeAttribute('class')
}

function finish(fragment) {
  for (const el of fragment.querySelectorAll('[class]')) classes(el)
  for (const img of fragment.querySelectorAll('img')) picture(img)
  for (const a of fragment.querySelectorAll('a')) link(a)
  for (const input of fragment.querySelectorAll('input')) {
    if (input.getAttribute('type') !== 'checkbox') input.remove()
    else {
      input.setAttribute('disabled', '')
      input.setAttribute('aria-label', input.checked ? 'done' : 'to do')
    }
  }
  for (const table of fragment.querySelectorAll('table')) {
    const box = h('div', {class: 'table-box', tabindex: '0', role: 'group', 'aria-label': 'Table'})
    table.replaceWith(box)
    box.append(table)
  }
  for (const pre of fragment.querySelectorAll('pre')) codeBlock(pre)
  return fragment
}

function codeBlock(pre) {
  const code = pre.querySelector('code')
  const language = LANGUAGE.exec(code?.className ?? '')?.[1] ?? ''
  const copy = iconButton('copy', 'Copy the code', async () => {
    await navigator.clipboard?.writeText(pre.textContent)
    copy.classList.add('done')
  })
  const box = h('div', {class: 'code'}, h('div', {class: 'code-head'}, h('span', null, language || 'text'), copy))
  pre.replaceWith(box)
  pre.setAttribute('tabindex', '0')
  box.append(pre)
}

// The answer of a structured agent is JSON: it is shown as such.
function jsonOf(text) {
  const trimmed = text.trim()
  if (!/^[{[]/.test(trimmed) || !/[}\]]$/.test(trimmed)) return null
  try {
    const pre = h('pre', null, h('code', {class: 'language-json'}, JSON.stringify(JSON.parse(trimmed), null, 2)))
    const fragment = document.createDocumentFragment()
    fragment.append(pre)
    codeBlock(pre)
    return fragment
  } catch {
    return null
  }
}

// The elements of a text. It never throws: what cannot be parsed is shown as it is.
export function markdown(text) {
  const json = jsonOf(String(text))
  if (json) return json
  let html
  try {
    html = marked(String(text), {gfm: true, breaks: false, headerIds: false, mangle: false})
  } catch {
    const fragment = document.createDocumentFragment()
    fragment.append(h('p', null, String(text)))
    return fragment
  }
  return finish(purify.sanitize(html, CONFIG))
}

// Colours for the code blocks below an element; the highlighter is large and is fetched when it is first needed.
export async function highlight(el) {
  const blocks = [...el.querySelectorAll('pre > code[class^=language-]:not([data-lit])')].filter((b) => b.textContent.length < 100000)
  if (blocks.length === 0) return
  await import('./highlight.js')
  for (const code of blocks) {
    const language = LANGUAGE.exec(code.className)?.[1]
    code.dataset.lit = ''
    if (!language || !window.hljs.getLanguage(language)) continue
    const html = window.hljs.highlight(language, code.textContent, true).value
    code.replaceChildren(purify.sanitize(html, {ALLOWED_TAGS: ['span'], ALLOWED_ATTR: ['class'], RETURN_DOM_FRAGMENT: true}))
  }
}

// Markdown that grows: whole paragraphs are made once, only what follows the last of them again with each piece.
export class LiveMarkdown {
  constructor(el) {
    this.el = el
    this.text = ''
    this.done = 0 // characters whose elements stay
    this.tail = []
    this.frame = 0
  }
  push(delta) {
    this.text += delta
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw())
  }
  draw() {
    this.frame = 0
    const cut = lastBreak(this.text, this.done)
    for (const node of this.tail) node.remove()
    if (cut > this.done) {
      this.el.append(markdown(this.text.slice(this.done, cut)))
      this.done = cut
    }
    const rest = markdown(this.text.slice(this.done))
    this.tail = [...rest.childNodes]
    this.el.append(rest)
  }
  end() {
    if (this.frame) cancelAnimationFrame(this.frame)
    this.frame = 0
    this.el.replaceChildren(markdown(this.text))
    highlight(this.el).catch(() => {})
  }
}

// Behind the last empty line that is not within a fence.
function lastBreak(text, from) {
  let cut = from
  let fence = ''
  let at = from
  while (at < text.length) {
    const end = text.indexOf('\n', at)
    if (end < 0) break
    const line = text.slice(at, end).trim()
    const mark = /^(```+|~~~+)/.exec(line)?.[1]
    if (mark && !fence) fence = mark
    else if (mark && mark.startsWith(fence) && line === mark) fence = ''
    else if (!line && !fence) cut = end + 1
    at = end + 1
  }
  return cut
}
