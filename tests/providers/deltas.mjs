// The pieces of a reply, put together again, with whatever is wrong in their order.
import {asObject} from './wires/request.mjs'

// deltas: of one model call. {text, thinking, calls: [{name, arguments}], usage, finish, wrong: [what]}
export function joined(deltas) {
  const reply = {text: '', calls: [], usage: null, finish: null}
  const wrong = []
  const open = new Set()
  const within = (d) => open.has(d.index) || wrong.push(`${d.kind} of call ${d.index}, which is not open`)
  const take = {
    text: (d) => (reply.text += d.text),
    tool_call_start(d) {
      if (d.index !== reply.calls.length) wrong.push(`call ${d.index} is the ${reply.calls.length + 1}. that starts`)
      if (!d.id) wrong.push(`call ${d.index} has no id`)
      reply.calls[d.index] = {name: d.name, arguments: ''}
      open.add(d.index)
    },
    tool_call_arguments(d) {
      if (within(d) === true) reply.calls[d.index].arguments += d.text
    },
    tool_call_end: (d) => within(d) === true && open.delete(d.index),
    usage(d) {
      if (d.usage.output_tokens < (reply.usage?.output ?? 0)) wrong.push('the usage shrinks')
      reply.usage = {input: d.usage.input_tokens, output: d.usage.output_tokens}
    },
    finish: (d) => (reply.finish = d.finish_reason),
  }
  for (const d of deltas) {
    if (reply.finish) wrong.push(`${d.kind} after the end`)
    if (d.text === '') wrong.push(`${d.kind} is empty`)
    if (take[d.kind]) take[d.kind](d)
    else wrong.push(`a piece of kind ${d.kind}`)
  }
  if (!reply.finish) wrong.push('no end')
  return {...reply, calls: reply.calls.map((c) => ({...c, arguments: asObject(c.arguments)})), wrong, open: open.size}
}
