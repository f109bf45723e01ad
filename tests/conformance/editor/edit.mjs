// What a person sees who edits files with a language server and the schemas of the program. SERVER REEVE
// Proves 10/editor: An editor completes, explains and checks files by the schema alone
import {execFileSync} from 'node:child_process'
import {mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync} from 'node:fs'
import {tmpdir} from 'node:os'
import {join, resolve} from 'node:path'
import {pathToFileURL} from 'node:url'
import {Client} from './client.mjs'

const [server, reeve] = process.argv.slice(2)
const work = mkdtempSync(join(tmpdir(), 'editor-'))
const faults = []
const fault = (text) => faults.push(text)

// --- the schemas, as docs/how-to/edit-with-completion.md says

const formats = ['pipeline', 'script', 'agent', 'retention', 'quotas']
const schemas = {}
for (const format of formats) {
  const file = join(work, `${format}.schema.json`)
  writeFileSync(file, execFileSync(reeve, ['schema', format]))
  schemas[pathToFileURL(file).href] = `**/${format}/*.yaml`
}
const uri = (format, name) => `file:///${format}/${name}`
const yaml = {schemas, validate: true, completion: true, hover: true, schemaStore: {enable: false}, format: {enable: false}}
const client = new Client(server, {yaml, http: {}, files: {}, '[yaml]': {}, editor: {}})
const say = (f) => `${f.range.start.line + 1}:${f.range.start.character + 1} ${f.message}`

// --- files without a mistake

const kinds = [
  ['pipeline', 'pipelines', /^(?!.*-script).*\.yaml$/],
  ['script', 'pipelines/scripts', /\.yaml$/],
  ['agent', 'pipelines/agents', /\.yaml$/],
]

async function open_all() {
  let n = 0
  for (const [format, folder, names] of kinds)
    for (const name of readdirSync(folder).filter((f) => names.test(f)).sort()) {
      const found = await client.open(uri(format, name), readFileSync(resolve(folder, name), 'utf8'))
      if (found.length) fault(`${folder}/${name}: ${found.map(say).join('; ')}`)
      n++
    }
  if (n < 40) fault(`only ${n} files were opened`)
  return n
}

// --- places: | is where the cursor stands. Asked for: labels that have to be among what is offered

const STAGE = 'name: x\nagents:\n  - name: a\n'
const offers = [
  ['pipeline', 'na|', ['name']],
  ['pipeline', 'name: x\n|', ['agents', 'models', 'prompts', 'tests', 'mcp_servers']],
  ['pipeline', `${STAGE}    out|`, ['output_mode', 'output_schema', 'output_key']],
  ['pipeline', `${STAGE}    output_mode: |`, ['json', 'text']],
  ['pipeline', `${STAGE}    has_llm: |`, ['true', 'false']],
  ['pipeline', `${STAGE}tests:\n  - name: t\n    expect:\n      |`, ['visited', 'status', 'response']],
  ['script', '|', ['models', 'tools', 'answers']],
  ['agent', '|', ['name', 'description', 'type', 'properties']],
  ['quotas', '|', ['plans']],
  ['retention', '|', ['keep']],
]
const explains = [
  ['pipeline', `${STAGE}    has|_llm: true\n`, 'calls a model'],
  ['pipeline', 'name: x\nmax_llm_calls|: 3\n', 'Model calls a run may make'],
  ['pipeline', `${STAGE}tests:\n  - name: t\n    expect:\n      vis|ited: [a]\n`, 'Every stage visit'],
]
const mistakes = [
  ['pipeline', 'nmae: x\n', /nmae.*not allowed/],
  ['pipeline', 'name: x\nmax_llm_calls: many\n', /Incorrect type\. Expected "integer"/],
  ['pipeline', `${STAGE}    output_mode: xml\n`, /Value is not accepted\. Valid values: "json", "text"/],
  ['pipeline', `${STAGE}tests:\n  - name: t\n    expect: {visited: a}\n`, /Incorrect type|does not match/],
  ['pipeline', 'agents: []\n', /Missing property "name"/],
  ['agent', 'name: a\nproperties: []\n', /Incorrect type/],
  ['script', 'tools: 7\n', /Incorrect type/],
]
let n_texts = 0

async function place(format, text) {
  const at = text.indexOf('|')
  const before = text.slice(0, at < 0 ? 0 : at).split('\n')
  const file = uri(format, `text${++n_texts}.yaml`)
  const found = await client.open(file, at < 0 ? text : text.slice(0, at) + text.slice(at + 1))
  return {file, found, position: {line: before.length - 1, character: before.at(-1).length}}
}

async function ask_all() {
  for (const [format, text, wanted] of offers) {
    const p = await place(format, text)
    const labels = (await client.complete(p.file, p.position)).items.map((i) => i.label)
    const lacks = wanted.filter((w) => !labels.includes(w))
    if (lacks.length) fault(`${JSON.stringify(text)}: ${lacks} are not offered, but ${labels}`)
  }
  for (const [format, text, wanted] of explains) {
    const p = await place(format, text)
    const said = JSON.stringify(await client.hover(p.file, p.position))
    if (!said.includes(wanted)) fault(`${JSON.stringify(text)}: explained by ${said}`)
  }
  for (const [format, text, wanted] of mistakes) {
    const said = (await place(format, text)).found.map(say).join('; ')
    if (!wanted.test(said)) fault(`${JSON.stringify(text)}: marked is ${said || 'nothing'}`)
  }
}

await client.start()
const n_files = await open_all()
await ask_all()
await client.stop()
rmSync(work, {recursive: true})
for (const f of faults) console.log(f)
console.log(`${n_files} files, ${offers.length} completions, ${explains.length} explanations, ${mistakes.length} mistakes, ${faults.length} faults`)
process.exit(faults.length ? 1 : 0)
