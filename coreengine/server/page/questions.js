// A question that a run waits with, as a card: approve or deny (with other arguments), choose, decide, write.
// What it gives is what `POST /runs/{id}/answer` takes beside the id of the question, and `payload` of an AG-UI resume.
import {h, icon, fill} from './dom.js'

const pretty = (value) => JSON.stringify(value ?? {}, null, 2)

const REASONS = {outcome_unknown: ['happened', 'not_happened', 'fail'], tool_input: ['accept', 'decline', 'cancel']}

// {id, kind, text, data, expires} from an interrupt of AG-UI, or from a pending question of GET /runs/{id}.
export function questionOf(q) {
  const data = q.metadata?.data ?? q.data ?? null
  return {
    id: q.id,
    kind: q.reason ?? q.kind ?? 'question',
    text: q.message ?? q.question ?? q.text ?? '',
    data,
    options: q.responseSchema?.properties?.choice?.enum ?? data?.options ?? null,
    decisions: q.responseSchema?.properties?.decision?.enum ?? REASONS[data?.reason] ?? null,
    expires: q.expiresAt ?? q.expires_at ?? null,
    call: q.toolCallId ?? data?.step_id ?? null,
  }
}

const DECISIONS = {
  happened: 'It happened',
  not_happened: 'It did not happen',
  fail: 'Let it fail',
  accept: 'Send',
  decline: 'Decline',
  cancel: 'Dismiss',
  approve: 'Approve',
  reject: 'Reject',
  modify: 'Change',
}

// A text area for JSON that says what is wrong with it. value(): the object, undefined when it is not one.
function jsonField(label, initial) {
  const area = h('textarea', {class: 'json', rows: String(Math.min(12, initial.split('\n').length + 1)), spellcheck: 'false', 'aria-label': label})
  area.value = initial
  const error = h('p', {class: 'error', role: 'alert', hidden: true})
  const value = () => {
    try {
      const parsed = JSON.parse(area.value)
      if (parsed === null || typeof parsed !== 'object' || Array.isArray(parsed)) throw new Error('this must be an object')
      error.hidden = true
      return parsed
    } catch (e) {
      error.textContent = `${label}: ${e.message}`
      error.hidden = false
      area.focus()
      return undefined
    }
  }
  return {el: h('div', {class: 'field'}, h('label', null, label, area), error), area, value}
}

const note = (label) => h('input', {type: 'text', class: 'note', placeholder: label, 'aria-label': label, maxlength: '2000'})

function confirmation(q, answer) {
  const parameters = q.data?.parameters
  const words = note('A note for the model (not required)')
  const shown = h('pre', {tabindex: '0'}, pretty(parameters))
  let field = null
  const edit = h(
    'button',
    {
      type: 'button',
      onclick: () => {
        field = jsonField('Arguments', pretty(parameters))
        shown.replaceWith(field.el)
        edit.remove()
        field.area.focus()
      },
    },
    icon('edit'),
    'Edit',
  )
  const give = (approved) => {
    const payload = {approved}
    if (approved && field) {
      const changed = field.value()
      if (changed === undefined) return
      payload.arguments = changed
    }
    if (words.value.trim()) payload.text = words.value.trim()
    answer(payload, approved ? 'approved' : 'denied')
  }
  return [
    parameters ? shown : null,
    words,
    h(
      'div',
      {class: 'actions'},
      parameters ? edit : null,
      h('button', {type: 'button', class: 'danger', onclick: () => give(false)}, 'Deny'),
      h('button', {type: 'button', class: 'primary', onclick: () => give(true)}, 'Approve'),
    ),
  ]
}

function choices(q, answer) {
  const words = note('A note (not required)')
  const give = (choice) => answer(words.value.trim() ? {choice, text: words.value.trim()} : {choice}, String(choice))
  return [h('div', {class: 'actions choices'}, q.options.map((o) => h('button', {type: 'button', onclick: () => give(o)}, String(o)))), words]
}

function decisions(q, answer) {
  const list = q.decisions ?? ['approve', 'reject', 'modify']
  const words = note('A note (not required)')
  const needsData = list.includes('modify') || list.includes('happened') || list.includes('accept')
  const label = list.includes('modify') ? 'What is used in its place' : list.includes('accept') ? 'The values of the form' : 'What it gave'
  const field = needsData ? jsonField(label, pretty(q.data?.output ?? {})) : null
  if (field) field.el.hidden = true
  const give = (decision) => {
    const wants = decision === 'modify' || decision === 'happened' || decision === 'accept'
    if (wants && field.el.hidden) {
      field.el.hidden = false
      field.area.focus()
      return
    }
    const payload = {decision}
    if (wants) {
      payload.data = field.value()
      if (payload.data === undefined) return
    }
    if (words.value.trim()) payload.text = words.value.trim()
    answer(payload, DECISIONS[decision] ?? decision)
  }
  return [
    q.data?.schema ? h('pre', {tabindex: '0'}, pretty(q.data.schema.properties)) : null,
    q.data?.output !== undefined ? h('pre', {tabindex: '0'}, pretty(q.data.output)) : null,
    field?.el,
    words,
    h('div', {class: 'actions'}, list.map((d) => h('button', {type: 'button', class: d === 'approve' ? 'primary' : null, onclick: () => give(d)}, DECISIONS[d] ?? d))),
  ]
}

function words(q, answer) {
  const area = h('textarea', {rows: '2', 'aria-label': 'Your answer', placeholder: 'Your answer', required: true})
  const form = h('form', null, area, h('div', {class: 'actions'}, h('button', {type: 'submit', class: 'primary'}, 'Answer')))
  form.addEventListener('submit', (e) => {
    e.preventDefault()
    const text = area.value.trim()
    if (text) answer({text}, text)
  })
  return [form]
}

// The card of a question. on_answer(payload, words) is called once; it may throw: then the card can be used again.
export function questionCard(raw, on_answer) {
  const q = questionOf(raw)
  const error = h('p', {class: 'error', role: 'alert', hidden: true})
  const body = h('div', {class: 'question-body'})
  const title = `question-${q.id}`
  const el = h(
    'section',
    {class: 'question', 'aria-labelledby': title, 'data-question': q.id},
    h('h3', {id: title}, icon('warn'), h('span', null, q.text || 'The run waits for an answer')),
    body,
    error,
  )
  const answer = async (payload, said) => {
    error.hidden = true
    el.inert = true
    try {
      await on_answer({id: q.id, payload}, said)
      fill(body, h('p', {class: 'said'}, icon(payload.approved === false ? 'cross' : 'check'), said))
      el.classList.add('answered')
    } catch (e) {
      error.textContent = [e.detail ?? e.message, e.hint].filter(Boolean).join(' · ')
      error.hidden = false
    }
    el.inert = false
  }
  const form = q.options ? choices : q.decisions || q.kind === 'agent_review' ? decisions : q.kind === 'confirmation' ? confirmation : words
  fill(body, form(q, answer))
  if (q.expires && Date.parse(q.expires))
    body.append(h('p', {class: 'muted small'}, 'Can be answered until ', h('time', {datetime: q.expires}, new Date(q.expires).toLocaleString())))
  return el
}
