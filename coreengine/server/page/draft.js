// The draft of an agent: a document that a person changes in a form and an agent by actions; what is wrong with it is
// asked of the server after each change.
import {send} from './api.js'
import {patched} from './jsonpatch.js'
import {calmly} from './words.js'

const MAX_UNDO = 100
const CHECK_MS = 250

export const EMPTY = {
  type: 'object',
  name: 'my-agent',
  version: '1.0.0',
  short_description: '',
  description: 'You help with ...\n',
  properties: {},
  required: [],
  tools: [],
  tags: [],
}

// Where a path of the nested form is in the flat one.
const flat = (path) => (typeof path === 'string' ? path.replace(/^\/(metadata|json_schema_extra)(?=\/)/, '') : path)

export class Draft extends EventTarget {
  constructor(doc) {
    super()
    this.doc = structuredClone(doc)
    this.saved = JSON.stringify(doc)
    this.before = []
    this.findings = []
    this.valid = null
    this.turn = 0
    this.check = calmly(() => this.validate(), CHECK_MS)
  }
  get text() {
    return JSON.stringify(this.doc)
  }
  get isChanged() {
    return this.text !== this.saved
  }

  // by: "form" (which shows it already) or "agent".
  set(doc, by) {
    const was = this.text
    const next = JSON.stringify(doc)
    if (next === was) return
    this.before.push(was)
    if (this.before.length > MAX_UNDO) this.before.shift()
    this.doc = doc
    this.dispatchEvent(new CustomEvent('change', {detail: by}))
    this.check()
  }
  put(key, value) {
    this.set({...this.doc, [key]: value}, 'form')
  }
  // Throws when an operation does not fit; nothing is changed then.
  patch(operations) {
    const list = Array.isArray(operations) ? operations.map((op) => ({...op, path: flat(op?.path), ...(op?.from ? {from: flat(op.from)} : {})})) : operations
    this.set(patched(this.doc, list), 'agent')
  }
  undo() {
    const was = this.before.pop()
    if (was === undefined) return
    this.doc = JSON.parse(was)
    this.dispatchEvent(new CustomEvent('change', {detail: 'undo'}))
    this.check()
  }

  async validate() {
    const mine = ++this.turn
    let result
    try {
      result = await send('POST', '/agents/validate', this.text)
    } catch (e) {
      result = {valid: false, findings: [{severity: 'error', message: e.detail ?? e.message}]}
    }
    if (mine !== this.turn) return
    this.valid = result.valid
    this.findings = result.findings
    this.dispatchEvent(new Event('checked'))
  }
  async save() {
    const text = this.text
    const done = await send('PUT', '/agents', text)
    this.saved = text
    this.dispatchEvent(new CustomEvent('change', {detail: 'save'}))
    return done
  }
  close() {
    this.turn++
    this.check.stop()
  }
}
