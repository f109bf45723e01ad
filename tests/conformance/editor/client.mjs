// A client of the Language Server Protocol, as small as one can be: it opens texts and asks about places in them.
import {spawn} from 'node:child_process'

const LIMIT_MS = 60_000 // for one answer; a server that hangs fails the test

export class Client {
  #next = 1
  #answers = new Map() // id -> [resolve, reject]
  #findings = new Map() // uri -> resolve
  #rest = Buffer.alloc(0)

  constructor(program, settings) {
    this.settings = settings
    this.child = spawn(process.execPath, [program, '--stdio'], {stdio: ['pipe', 'pipe', 'inherit']})
    this.child.stdout.on('data', (piece) => this.#read(piece))
    this.child.on('exit', (status) => {
      for (const [, reject] of this.#answers.values()) reject(new Error(`the language server ended with ${status}`))
    })
  }

  #send(message) {
    const body = Buffer.from(JSON.stringify({jsonrpc: '2.0', ...message}))
    this.child.stdin.write(`Content-Length: ${body.length}\r\n\r\n`)
    this.child.stdin.write(body)
  }

  #read(piece) {
    this.#rest = Buffer.concat([this.#rest, piece])
    for (;;) {
      const head = this.#rest.indexOf('\r\n\r\n')
      if (head < 0) return
      const length = Number(/Content-Length: (\d+)/i.exec(this.#rest.subarray(0, head).toString())[1])
      if (this.#rest.length < head + 4 + length) return
      const body = this.#rest.subarray(head + 4, head + 4 + length).toString()
      this.#rest = this.#rest.subarray(head + 4 + length)
      this.#take(JSON.parse(body))
    }
  }

  #take(m) {
    if (m.method === 'workspace/configuration')
      this.#send({id: m.id, result: m.params.items.map((i) => this.settings[i.section] ?? null)})
    else if (m.method && m.id !== undefined) this.#send({id: m.id, result: null})
    else if (m.method === 'textDocument/publishDiagnostics') this.#findings.get(m.params.uri)?.(m.params.diagnostics)
    else if (m.id !== undefined) {
      const [resolve, reject] = this.#answers.get(m.id)
      this.#answers.delete(m.id)
      m.error ? reject(new Error(m.error.message)) : resolve(m.result)
    }
  }

  ask(method, params) {
    return this.#within(method, new Promise((resolve, reject) => {
      this.#answers.set(this.#next, [resolve, reject])
      this.#send({id: this.#next++, method, params})
    }))
  }

  tell(method, params) {
    this.#send({method, params})
  }

  #within(what, answer) {
    let timer
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer to ${what}`)), LIMIT_MS)
    })
    return Promise.race([answer, late]).finally(() => clearTimeout(timer))
  }

  async start() {
    const capabilities = {
      textDocument: {publishDiagnostics: {}, hover: {contentFormat: ['markdown']}, completion: {completionItem: {snippetSupport: true}}},
      workspace: {configuration: true},
    }
    await this.ask('initialize', {processId: process.pid, rootUri: null, capabilities})
    this.tell('initialized', {})
    this.tell('workspace/didChangeConfiguration', {settings: this.settings})
  }

  // What the server finds wrong with a text.
  open(uri, text) {
    const found = this.#within(`opening ${uri}`, new Promise((resolve) => this.#findings.set(uri, resolve)))
    this.tell('textDocument/didOpen', {textDocument: {uri, languageId: 'yaml', version: 1, text}})
    return found
  }

  complete(uri, position) {
    return this.ask('textDocument/completion', {textDocument: {uri}, position})
  }

  hover(uri, position) {
    return this.ask('textDocument/hover', {textDocument: {uri}, position})
  }

  async stop() {
    await this.ask('shutdown', null)
    this.tell('exit', null)
  }
}
