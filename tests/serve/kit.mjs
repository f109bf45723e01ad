// What the suites share: a server with a store of its own, requests, counting what held.
import {spawn, spawnSync} from 'node:child_process'
import {createRequire} from 'node:module'
import {mkdirSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs'
import {tmpdir} from 'node:os'
import {dirname, join} from 'node:path'
import {fileURLToPath} from 'node:url'
import {isDeepStrictEqual} from 'node:util'
import {until} from '../kit/until.mjs'

export const here = dirname(fileURLToPath(import.meta.url))
export const root = join(here, '../..')
export const reeve = process.argv[2]
export const scratch = mkdtempSync(join(tmpdir(), 'reeve-serve-'))
export const load = createRequire(join(process.env.CLIENT_MODULES ?? here, 'package.json'))
const children = new Set()
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(scratch, {recursive: true, force: true})
})

let held = 0
const failures = []
export function check(ok, what, ...details) {
  if (ok) held++
  else {
    failures.push(what)
    console.error(`NOT: ${what}${details.map((d) => '\n  ' + (typeof d === 'string' ? d : JSON.stringify(d))).join('')}`)
  }
  return ok
}
export const equal = (got, want, what) => check(isDeepStrictEqual(got, want), what, {got}, {want})
export function finish(suite) {
  console.log(`${suite}: ${held} hold, ${failures.length} do not`)
  process.exit(failures.length ? 1 : 0)
}

export const env = {PATH: process.env.PATH, HOME: scratch, XDG_STATE_HOME: scratch, XDG_CONFIG_HOME: scratch, LANG: 'C.UTF-8'}
for (const name of ['ASAN_OPTIONS', 'TSAN_OPTIONS']) if (process.env[name]) env[name] = process.env[name]
export function file(name, text) {
  const path = join(scratch, name)
  mkdirSync(dirname(path), {recursive: true})
  writeFileSync(path, text)
  return path
}
export function command(...args) {
  const r = spawnSync(reeve, args, {cwd: root, env, encoding: 'utf8'})
  return {status: r.status, out: r.stdout, err: r.stderr}
}

// An agent with a tool that asks before it destroys.
export function agents(dir = 'agents') {
  file(
    `${dir}/boss.yaml`,
    'kind: agent\nname: boss\ndescription: Answers.\nmodel: test:model\ntools:\n  - name: wipe\n  - name: search\n',
  )
  return join(scratch, dir)
}

// A store of that name: a file, or a schema of the server of PostgreSQL that REEVE_STORE names.
export const store = (name) =>
  process.env.REEVE_STORE ? `${process.env.REEVE_STORE}&schema=${name.replace(/\W/g, '_')}` : join(scratch, name)

// {url, log, says, stop, kill}: says waits for a line of its log; stop drains and gives the exit status; log has the lines of the access log.
// port: of a server before, which clients come back to.
// before: a program with arguments that starts it.
export function serve(name, args = [], more = {}, port = 0, before = []) {
  return new Promise((resolve, reject) => {
    const [program, ...rest] = [...before, reeve]
    const child = spawn(program, [...rest, 'serve', '--listen', `127.0.0.1:${port}`, '--store', store(name), ...args], {
      cwd: root,
      env: {...env, ...more},
    })
    children.add(child)
    let err = ''
    let out = ''
    const end = new Promise((done) =>
      child.on('close', (status, signal) => {
        children.delete(child)
        if (err.includes('WARNING: ThreadSanitizer')) check(false, 'no race is found', err) // of one that is killed, too
        done(signal ?? status)
      }),
    )
    const server = {
      url: '',
      pid: child.pid,
      err: () => err,
      says: (text) => until(() => text.test(err), child.stderr),
      log: () => out.slice(0, out.lastIndexOf('\n') + 1).split('\n').filter(Boolean).map((line) => JSON.parse(line)),
      hold: () => child.stdout.pause(), // and nobody reads the access log
      go: () => child.stdout.resume(),
      stop: () => (child.kill('SIGTERM'), end),
      kill: () => (child.kill('SIGKILL'), end),
      end,
    }
    child.stdout.on('data', (part) => (out += part))
    child.stderr.on('data', (part) => {
      err += part
      const m = /listening on (\S+) .*\n/.exec(err)
      if (m && !server.url) {
        server.url = m[1]
        resolve(server)
      }
    })
    end.then((status) => server.url || reject(new Error(`serve ended with ${status}: ${err}`)))
  })
}

export async function call(server, method, path, body, headers = {}) {
  const r = await fetch(server.url + path, {
    method,
    headers: {...(body === undefined ? {} : {'content-type': 'application/json'}), ...headers},
    body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await r.text()
  let json
  try {
    json = JSON.parse(text)
  } catch {}
  return {status: r.status, headers: r.headers, text, json}
}
