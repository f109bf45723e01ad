// Agents: the list of them, and the builder of one.
import {get, send} from '../api.js'
import {confirmDialog, fill, h, icon, iconButton, toast} from '../dom.js'
import {showBuilder} from '../builder.js'

export const title = 'Agents'

function card(agent, again) {
  const path = encodeURIComponent(agent.name)
  const remove = async () => {
    if (!(await confirmDialog(`Delete ${agent.name}?`, 'Its document is deleted from the store. Sessions stay.', 'Delete'))) return
    try {
      await send('DELETE', `/agents/${path}`)
      again()
    } catch (e) {
      toast(e.detail ?? e.message, 'bad')
    }
  }
  return h(
    'li',
    {class: 'agent-card'},
    h('h2', null, agent.valid ? h('a', {href: `#/agents/${path}`}, agent.name) : agent.name, ' ', h('span', {class: 'muted small'}, agent.version ?? '')),
    agent.valid ? h('p', null, (agent.description ?? '').slice(0, 240)) : h('p', {class: 'error'}, agent.error?.message ?? 'Its document has errors.'),
    h('p', {class: 'muted small'}, [agent.mode, agent.source, agent.model].filter(Boolean).join(' · ')),
    agent.tools?.length ? h('p', {class: 'small mono'}, agent.tools.join(', ')) : null,
    h(
      'div',
      {class: 'actions'},
      agent.source === 'store' ? iconButton('trash', `Delete ${agent.name}`, remove) : null,
      agent.valid ? h('a', {class: 'button', href: `#/chat?agent=${path}`}, icon('chat'), 'Chat') : null,
      agent.valid ? h('a', {class: 'button', href: `#/agents/${path}`}, icon('edit'), 'Open') : null,
    ),
  )
}

async function showList(main) {
  const list = h('ul', {class: 'agent-cards', 'aria-label': 'Agents'})
  const filter = h('input', {type: 'search', placeholder: 'Filter', 'aria-label': 'Filter the agents'})
  let agents = []
  const draw = () => {
    const words = filter.value.toLowerCase()
    fill(list, agents.filter((a) => `${a.name} ${a.description ?? ''} ${(a.tags ?? []).join(' ')}`.toLowerCase().includes(words)).map((a) => card(a, load)))
  }
  const load = async () => {
    agents = await get('/agents')
    draw()
  }
  filter.addEventListener('input', draw)
  fill(main, h('div', {class: 'head'}, h('h1', {class: 'grow'}, 'Agents'), filter, h('a', {class: 'button primary', href: '#/agents/new'}, icon('plus'), 'New agent')), h('div', {class: 'body wide-body'}, list))
  await load()
}

export function show(main, params) {
  if (params[0] === 'new') return showBuilder(main, null)
  return params[0] ? showBuilder(main, params[0]) : showList(main)
}
