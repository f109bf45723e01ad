// The conformance suites of the protocol's own project, run against /mcp. The server is quiet: no one reads its log meanwhile.
import {spawnSync} from 'node:child_process'
import {dirname, join} from 'node:path'
import {fileURLToPath} from 'node:url'
import {check, equal, finish, scratch, serve} from '../serve/kit.mjs'
import {exceptions} from './exceptions.mjs'

const here = dirname(fileURLToPath(import.meta.url))
const tools = ['greet', 'slow_compute', 'json_schema_2020_12_tool', 'test_header'].flatMap((tool) => ['--mcp-tool', `judged:${tool}`])
const server = await serve('judges.db', ['--quiet', '-C', process.argv[3], ...tools, '--pipelines', join(here, 'pipelines'), '--scripts', join(here, 'scripts')])

function judge(name, ...args) {
  const program = join(process.env.CLIENT_MODULES, 'node_modules', name, 'dist/index.js')
  const r = spawnSync(process.execPath, [program, 'server', '--url', `${server.url}/mcp`, ...args], {
    cwd: scratch, encoding: 'utf8', maxBuffer: 1 << 26,
  })
  const lines = r.stdout.slice(r.stdout.indexOf('=== SUMMARY ===')).split('\nTotal:')[0].split('\n')
  const seen = Object.fromEntries(lines.map((line) => /^([✓✗]) ([\w-]+): /.exec(line)).filter(Boolean).map((m) => [m[2], m[1] === '✓']))
  const failed = Object.keys(seen).filter((scenario) => !seen[scenario]).sort()
  check(Object.keys(seen).length > 25, `${name} ran`, r.stdout.slice(-2000), r.stderr.slice(-2000))
  equal(failed, Object.keys(exceptions[name]).sort(), `${name}: the scenarios that fail are those that are listed`)
  console.log(`${name}: ${Object.keys(seen).length - failed.length} of ${Object.keys(seen).length} scenarios`)
}

judge('conformance-0.1', '--suite', 'all')
judge('conformance-0.2', '--requirements', '2026-07-28')
equal(await server.stop(), 0, 'the server ends')
finish('judges')
