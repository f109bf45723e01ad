// JSON Patch (RFC 6902) on a document, all operations or none. The operations come from a model: what does not fit is
// an error with the operation's number, and no name reaches the prototypes of this page.
const FORBIDDEN = new Set(['__proto__', 'prototype', 'constructor'])
const MAX_OPERATIONS = 200

const has = (o, key) => Object.hasOwn(o, key)

function parts(pointer) {
  if (typeof pointer !== 'string' || (pointer !== '' && pointer[0] !== '/')) throw new Error(`"${String(pointer)}" is not a path`)
  const list = pointer
    .split('/')
    .slice(1)
    .map((p) => p.replace(/~1/g, '/').replace(/~0/g, '~'))
  if (list.some((p) => FORBIDDEN.has(p))) throw new Error(`"${pointer}" is not a path of a document`)
  return list
}

function index(list, key, most) {
  const n = /^(0|[1-9][0-9]*)$/.test(key) ? Number(key) : -1
  if (n < 0 || n > most) throw new Error(`there is no element "${key}"`)
  return n
}

function read(doc, path) {
  let at = doc
  for (const key of parts(path)) {
    if (Array.isArray(at)) at = at[index(at, key, at.length - 1)]
    else if (at !== null && typeof at === 'object' && has(at, key)) at = at[key]
    else throw new Error(`there is no "${path}"`)
  }
  return at
}

// The container of the last part of a path; missing maps on the way are made when something is added.
function holder(doc, path, make) {
  const keys = parts(path)
  const last = keys.pop()
  let at = doc
  for (const key of keys) {
    if (make && at !== null && typeof at === 'object' && !Array.isArray(at) && !has(at, key)) at[key] = {}
    at = Array.isArray(at) ? at[index(at, key, at.length - 1)] : has(at ?? {}, key) ? at[key] : undefined
    if (at === null || typeof at !== 'object') throw new Error(`there is no "${path}"`)
  }
  return [at, last]
}

function add(doc, path, value) {
  if (path === '') return value
  let [at, key] = holder(doc, path, true)
  if (Array.isArray(at)) at.splice(key === '-' ? at.length : index(at, key, at.length), 0, value)
  else if (key === '-') throw new Error(`"${path}" is not a list`)
  else at[key] = value
  return doc
}

function remove(doc, path) {
  read(doc, path)
  const [at, key] = holder(doc, path, false)
  if (Array.isArray(at)) at.splice(index(at, key, at.length - 1), 1)
  else delete at[key]
  return doc
}

function apply(doc, op) {
  const copy = (v) => structuredClone(v)
  switch (op?.op) {
    case 'add':
      return add(doc, op.path, copy(op.value))
    case 'replace': {
      if (op.path === '') return copy(op.value)
      const [at, key] = holder(doc, op.path, true)
      if (Array.isArray(at)) at[index(at, key, at.length - 1)] = copy(op.value)
      else at[key] = copy(op.value)
      return doc
    }
    case 'remove':
      return remove(doc, op.path)
    case 'copy':
      return add(doc, op.path, copy(read(doc, op.from)))
    case 'move': {
      const value = copy(read(doc, op.from))
      return add(remove(doc, op.from), op.path, value)
    }
    case 'test':
      if (JSON.stringify(read(doc, op.path)) !== JSON.stringify(op.value)) throw new Error(`"${op.path}" is something else`)
      return doc
  }
  throw new Error(`"${String(op?.op)}" is not an operation`)
}

// The changed document; the one that is given stays as it is.
export function patched(doc, operations) {
  if (!Array.isArray(operations) || operations.length > MAX_OPERATIONS) throw new Error(`patches must be a list of at most ${MAX_OPERATIONS} operations`)
  let result = structuredClone(doc)
  operations.forEach((op, i) => {
    try {
      result = apply(result, op)
    } catch (e) {
      throw new Error(`operation ${i + 1}: ${e.message}`)
    }
  })
  if (result === null || typeof result !== 'object' || Array.isArray(result)) throw new Error('a document is a map')
  return result
}
