// The conformance suites of the protocol's own project, run against reeve as a client: judged.mjs is what they start.
import {spawnSync} from 'node:child_process'
import {join} from 'node:path'
import {fileURLToPath} from 'node:url'
import {check, equal, finish, scratch} from '../../serve/kit.mjs'
import {exceptions, measured} from './exceptions.mjs'

const client = fileURLToPath(new URL('judged.mjs', import.meta.url))

// Passed: nothing failed, and no advice was left unheeded.
function judge(name, least) {
  const program = join(process.env.CLIENT_MODULES, 'node_modules', name, 'dist/index.js')
  const r = spawnSync(process.execPath,
    [program, 'client', '--suite', 'all', '--timeout', '300000', '--command', `${process.execPath} ${client}`],
    {cwd: scratch, encoding: 'utf8', maxBuffer: 1 << 26, env: {...process.env, REEVE: process.argv[2]}})
  const lines = r.stdout.slice(r.stdout.lastIndexOf('=== SUITE SUMMARY ===')).split('\nTotal:')[0].split('\n')
  const all = lines.map((line) => /^([✓✗]) ([\w./-]+): /.exec(line)).filter(Boolean)
  const seen = all.filter((m) => !measured[name].includes(m[2]))
  const failed = seen.filter((m) => m[1] === '✗').map((m) => m[2]).sort()
  const listed = Object.keys(exceptions[name]).sort()
  check(seen.length >= least, `${name} ran`, r.stdout.slice(-2000), r.stderr.slice(-2000))
  if (JSON.stringify(failed) !== JSON.stringify(listed))
    console.log(r.stdout)
  equal(failed, listed, `${name}: the scenarios that fail are those that are listed`)
  console.log(`${name}: ${seen.length - failed.length} of ${seen.length} scenarios`)
}

judge('conformance-0.1', 25)
judge('conformance-0.2', 48)
finish('judges')
