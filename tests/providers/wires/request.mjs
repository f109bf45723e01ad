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

// Ids of calls are the provider's or made up: name them by their order. Arguments that are no JSON are an empty object to
// those wires that can not say them.
export function comparable(request) {
  const names = new Map()
  let made = 0
  const called = (c) => {
    names.set(c.id, `call ${++made}`) // an id may come again in a later turn
    return {...c, id: names.get(c.id), arguments: typeof c.arguments === 'string' ? {} : c.arguments}
  }
  const messages = request.messages.map((m) => ({
    ...m,
    ...(m.calls ? {calls: m.calls.map(called)} : {}),
    ...(m.answers === undefined ? {} : {answers: names.get(m.answers)}),
  }))
  return {...request, messages}
}
