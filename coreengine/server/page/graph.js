// The drawing of a pipeline: boxes and lines as the server placed them, and how far a run has come.
import {h, s} from './dom.js'

const SIGNS = {running: '▸', waits: '?', completed: '✓', failed: '✕', skipped: '–', cancelled: '■'}
const WORDS = {pending: 'not reached', waits: 'waits for a person'}
export const stateWord = (state) => WORDS[state] ?? state

function lines(text, x, y, attrs) {
  const parts = text.split('\n')
  return parts.map((part, i) => s('text', {...attrs, x, y: y - 7 * (parts.length - 1) + 4 + 14 * i}, part))
}

function drawEdge(edge, names) {
  const label = edge.cut ? `${edge.label} → ${names.get(edge.to)}`.trim() : edge.label
  const loop = edge.from === edge.to
  return s(
    'g',
    {class: `edge ${edge.kind}`},
    s('path', {class: 'line', d: edge.line}),
    s('path', {class: 'tip', d: edge.tip}),
    label ? lines(label, edge.label_x, edge.label_y, {class: loop ? 'label loop' : 'label'}) : null,
  )
}

function drawNode(node, pick) {
  const middle = node.x + node.width / 2
  const sign = s('text', {class: 'sign', 'aria-hidden': 'true', x: node.x + node.width, y: node.y - 4})
  const words = s('text', {class: 'words', x: node.x, y: node.y + node.height})
  const box = s(
    'g',
    {class: `node ${node.kind}`, 'data-stage': node.stage, ...(node.stage !== null && pick ? {tabindex: '0', role: 'button'} : {})},
    s('rect', {x: node.x, y: node.y, width: node.width, height: node.height, rx: node.stage === null ? 16 : 8}),
    s('text', {class: 'name', x: middle, y: node.y + node.height / 2 + (node.mark ? -3 : 5)}, node.name),
    node.mark ? s('text', {class: 'mark', x: middle, y: node.y + node.height / 2 + 14}, node.mark) : null,
    words,
    sign,
  )
  if (node.stage !== null && pick) {
    box.addEventListener('click', () => pick(node.stage))
    box.addEventListener('keydown', (e) => {
      if (e.key !== 'Enter' && e.key !== ' ') return
      e.preventDefault()
      pick(node.stage)
    })
  }
  return {box, sign, words}
}

// drawGraph(graph, {label, pick}) gives {el, stage(name, state, visits), move(from, to)}: pick is called with the name of
// a stage whose box is chosen. Names are those of the pipeline; one that it has not is left out.
export function drawGraph(graph, {label, pick} = {}) {
  const names = new Map(graph.nodes.map((n) => [n.id, n.name]))
  const ids = new Map(graph.nodes.map((n) => [n.stage ?? n.name, n.id]))
  const edges = graph.edges.map((e) => ({e, el: drawEdge(e, names)}))
  const nodes = new Map(graph.nodes.map((n) => [n.stage ?? ` ${n.name}`, drawNode(n, pick)]))
  const svg = s(
    'svg',
    {class: 'graph', viewBox: `0 40 ${graph.width} ${graph.height - 30}`, width: graph.width, height: graph.height - 30, role: 'group', 'aria-label': label},
    edges.map((edge) => edge.el),
    [...nodes.values()].map((n) => n.box),
  )
  const stage = (name, state, visits) => {
    const node = nodes.get(name)
    if (!node) return
    node.box.dataset.state = state
    node.words.textContent = `: ${stateWord(state)}${visits > 1 ? `, ${visits} visits` : ''}`
    node.sign.textContent = (visits > 1 ? `${visits}× ` : '') + (SIGNS[state] ?? '')
  }
  const move = (from, to) => {
    for (const {e, el} of edges) if (e.from === ids.get(from) && e.to === ids.get(to)) el.classList.add('taken')
  }
  for (const node of graph.nodes) if (node.stage !== null && pick) stage(node.stage, 'pending', 0)
  return {el: h('div', {class: 'graph-box', tabindex: '0', role: 'region', 'aria-label': 'Drawing'}, svg), stage, move}
}
