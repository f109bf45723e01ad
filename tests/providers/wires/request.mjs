// What the wires share in reading requests: arguments of calls, and the form in which requests are compared.

// Arguments as a value, so that {"a":1} and {"a": 1} are alike; what is no JSON stays the text that it is.
export function asObject(text) {
  if (text === '') return {}
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

// Ids of calls are the provider's or made up: name them by their order. Neighbours of one role are one message to all.
export function comparable(request) {
  const names = new Map()
  const nameOf = (id) => {
    if (!names.has(id)) names.set(id, `call ${names.size + 1}`)
    return names.get(id)
  }
  const messages = request.messages.map((m) => ({
    ...m,
    ...(m.calls ? {calls: m.calls.map((c) => ({...c, id: nameOf(c.id)}))} : {}),
    ...(m.answers === undefined ? {} : {answers: nameOf(m.answers)}),
  }))
  return {...request, messages}
}
