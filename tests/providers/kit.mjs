// What the suites share: running the program, reading its events, counting what held.
import {spawn} from 'node:child_process'
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs'
import {tmpdir} from 'node:os'
import {dirname, join} from 'node:path'
import {fileURLToPath} from 'node:url'
import {isDeepStrictEqual} from 'node:util'

export const here = dirname(fileURLToPath(import.meta.url))
export const root = join(here, '../..')
export const scratch = mkdtempSync(join(tmpdir(), 'reeve-providers-'))
process.on('exit', () => rmSync(scratch, {recursive: true, force: true}))

let held = 0
const failures = []
export function check(ok, what, ...details) {
  if (ok) held++
  else {
    failures.push(what)
    console.error(
      `NOT: ${what}${details.map((d) => '\n  ' + (typeof d === 'string' ? d : JSON.stringify(d))).join('')}`,
    )
  }
  return ok
}
export const equal = (got, want, what) => check(isDeepStrictEqual(got, want), what, {got}, {want})

export function finish(suite) {
  console.log(`${suite}: ${held} hold, ${failures.length} do not`)
  process.exit(failures.length ? 1 : 0)
}

// Run a program to its end: {status, out, err, leftovers}. Nothing of this process's keys and proxies is handed
// on. onOut sees what is written as it comes, and may send signals. A program that hangs is killed, which no check takes
// for an end; how long the others take is no matter.
const HANGS_MS = 15 * 60000
export function run(program, args, {env = {}, input = '', onOut} = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: here,
      detached: true, // a group of its own: what it leaves behind can be found
      env: {PATH: process.env.PATH, HOME: scratch, XDG_STATE_HOME: scratch, LANG: 'C.UTF-8', ...env},
    })
    const out = []
    const err = []
    const limit = setTimeout(() => child.kill('SIGKILL'), HANGS_MS)
    child.stdout.on('data', (part) => {
      out.push(part)
      onOut?.(part.toString('latin1'), child)
    })
    child.stderr.on('data', (part) => err.push(part))
    child.on('error', reject)
    child.on('close', (status, signal) => {
      clearTimeout(limit)
      let leftovers = true
      try {
        process.kill(-child.pid, 0)
      } catch {
        leftovers = false
      }
      resolve({
        status: signal ?? status,
        out: Buffer.concat(out).toString('utf8'),
        err: Buffer.concat(err).toString('utf8'),
        leftovers,
      })
    })
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
}

// A pipeline of pipelines/ with its words in capitals filled in, as a file of its own.
export function pipelineFile(name, copy, words = {}) {
  let text = readFileSync(join(here, 'pipelines', name), 'utf8')
  for (const [word, value] of Object.entries(words)) text = text.replace(word, value)
  const file = join(scratch, `${copy}.yaml`)
  writeFileSync(file, text)
  return file
}

// Lines of JSON; a line that is none becomes an event that no check will take for one.
export function eventsOf(text) {
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      try {
        return JSON.parse(line)
      } catch {
        return {type: 'no JSON', line}
      }
    })
}

// So many at a time, in order.
export async function inTurns(items, atOnce, work) {
  let next = 0
  const lane = async () => {
    while (next < items.length) await work(items[next++])
  }
  await Promise.all(Array.from({length: atOnce}, lane))
}
