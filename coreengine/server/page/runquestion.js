// What a run waits for, as a form: a yes or no, a choice, a text, other arguments of a call, a review.
import {ago, h} from './dom.js'
import {json} from './words.js'

const isObject = (v) => v !== null && typeof v === 'object' && !Array.isArray(v)

function button(word, kind, onclick) {
  return h('button', {type: 'button', class: kind, onclick}, word)
}

// The arguments of a call that waits for a yes; read() gives those that were changed, undefined when none was.
function editor(parameters, id) {
  const before = JSON.stringify(parameters, null, 2)
  const area = h('textarea', {id: `${id}-arguments`, rows: Math.min(14, before.split('\n').length + 1), spellcheck: 'false', class: 'mono'})
  area.value = before
  const fault = h('p', {class: 'error', role: 'alert', hidden: true})
  const read = () => {
    fault.hidden = true
    if (area.value.trim() === before) return undefined
    const value = JSON.parse(area.value)
    if (!isObject(value)) throw new SyntaxError('the arguments must be a JSON object')
    return value
  }
  const checked = (then) => {
    let value
    try {
      value = read()
    } catch (e) {
      fault.textContent = `These arguments are not JSON: ${e.message}`
      fault.hidden = false
      area.focus()
      return
    }
    then(value)
  }
  return {
    el: h('details', {class: 'edit-arguments'}, h('summary', null, 'Change the arguments'), h('label', {for: `${id}-arguments`}, 'Arguments, as JSON'), area, fault),
    checked,
  }
}

const PICKS = {
  agent_review: [
    ['approve', 'Approve', 'primary'],
    ['modify', 'Ask for changes', ''],
    ['reject', 'Reject', 'danger'],
  ],
}
const OUTCOMES = [
  ['happened', 'It happened', ''],
  ['not_happened', 'It did not happen', ''],
  ['fail', 'End the run', 'danger'],
]

const INPUTS = [
  ['decline', 'Decline', ''],
  ['cancel', 'Dismiss', ''],
]

// The values of a form of a tool, before anyone has changed them.
function blank(schema) {
  const values = {}
  for (const [key, of] of Object.entries(isObject(schema.properties) ? schema.properties : {}))
    values[key] = of?.default ?? of?.enum?.[0] ?? {boolean: false, integer: 0, number: 0}[of?.type] ?? ''
  return values
}

// questionForm(pending, answer): answer is called with the body of POST /runs/{id}/answer and may reject with an error,
// which is shown. The form is made of the kind of the question and of what it says about its choices.
export function questionForm(pending, answer) {
  const {id, kind, data = {}} = pending
  const text = h('textarea', {id: `${id}-text`, rows: 2})
  const fault = h('p', {class: 'error', role: 'alert', hidden: true})
  const buttons = h('div', {class: 'actions'})
  const give = async (body) => {
    fault.hidden = true
    for (const b of buttons.children) b.disabled = true
    try {
      await answer({interrupt_id: id, ...body, ...(text.value.trim() && !('text' in body) ? {text: text.value.trim()} : {})})
    } catch (e) {
      fault.textContent = [e.detail ?? e.message, e.hint].filter(Boolean).join(' ')
      fault.hidden = false
      for (const b of buttons.children) b.disabled = false
    }
  }
  const options = Array.isArray(data.options) ? data.options.filter((o) => typeof o === 'string') : []
  const form = data.reason === 'tool_input' && isObject(data.schema) ? editor(blank(data.schema), id) : null
  const review = data.reason === 'outcome_unknown' ? OUTCOMES : form ? INPUTS : PICKS[kind]
  const call = form ?? (kind === 'confirmation' && typeof data.tool === 'string' && isObject(data.parameters) ? editor(data.parameters, id) : null)
  if (options.length)
    for (const o of options.filter((o) => o !== 'text')) buttons.append(button(o, o === 'yes' ? 'primary' : '', () => give({choice: o})))
  if (options.includes('text')) buttons.append(button('Answer', 'primary', () => give({choice: 'text', text: text.value})))
  if (!options.length && review) for (const [decision, word, look] of review) buttons.append(button(word, look, () => give({decision})))
  if (form) buttons.append(button('Send', 'primary', () => form.checked((changed) => give({decision: 'accept', data: changed ?? blank(data.schema)}))))
  if (!options.length && !review && kind === 'confirmation')
    buttons.append(
      button('Deny', 'danger', () => give({approved: false})),
      button('Approve', 'primary', () => (call ? call.checked((changed) => give({approved: true, ...(changed ? {arguments: changed} : {})})) : give({approved: true}))),
    )
  if (!buttons.children.length) buttons.append(button('Answer', 'primary', () => give({text: text.value})))
  const shown = data.shown ?? (call ? {tool: data.tool, ...data.parameters} : (data.output ?? null))
  const needs = kind === 'clarification' || options.includes('text')
  return h(
    'section',
    {class: 'run-question', 'aria-label': 'Question', 'data-interrupt': id},
    h('h2', null, pending.question ?? pending.message ?? 'The run waits for an answer'),
    h(
      'p',
      {class: 'muted small'},
      `${kind} in stage ${pending.stage ?? '-'}`,
      pending.created_at ? `, asked ${ago(pending.created_at)}` : null,
      pending.expires_at ? `, until ${new Date(pending.expires_at).toLocaleString()}` : null,
    ),
    shown !== null && shown !== undefined ? json(shown, 'What it is about') : null,
    call?.el,
    h('div', {class: 'field'}, h('label', {for: `${id}-text`}, needs ? 'Your answer' : 'A remark'), text),
    fault,
    buttons,
  )
}
