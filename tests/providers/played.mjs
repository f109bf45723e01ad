// In the place of a replay server: what the provider of a capability plays (tests/plugins/played.c), in a file.
import {existsSync, readFileSync, rmSync, writeFileSync} from 'node:fs'
import {join} from 'node:path'
import {eventsOf, scratch} from './kit.mjs'
import {random} from './random.mjs'
import * as wire from './wires/capability.mjs'

let made = 0
export class Played {
  constructor(plugins, seed = 1) {
    this.wire = wire
    this.next = random(seed)
    this.baseUrl = join(scratch, `played-${++made}`)
    this.more = ['--capability-path', plugins]
    this.connections = 1 // there is none
  }

  start() {
    return this
  }

  stop() {}

  play(replies) {
    rmSync(`${this.baseUrl}.requests`, {force: true})
    writeFileSync(this.baseUrl, replies.map((r) => wire.lines(r, this.next).join('\n') + '\n').join(''))
  }

  get requests() {
    return existsSync(`${this.baseUrl}.requests`) ? eventsOf(readFileSync(`${this.baseUrl}.requests`, 'utf8')) : []
  }

  get complaints() {
    return this.requests.flatMap(wire.complaints)
  }

  // The pipeline with the capability, and without the address and the key of a server.
  pipeline(file) {
    const own = file.replace(/\.yaml$/, '-played.yaml')
    const text = readFileSync(file, 'utf8').replace(/base_url: "[^"]*", api_key: "[^"]*", /g, '')
    writeFileSync(own, text.replace(/^models:/m, 'capabilities: [played]\nmodels:'))
    return own
  }
}
