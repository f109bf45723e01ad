// A conversation as files for the program, and one run of it.
import {writeFileSync} from 'node:fs'
import {join} from 'node:path'
import {pipelineFile, run, scratch} from './kit.mjs'

export const KEY = 'peer-secret'
export const slug = (c) => c.name.replace(/\W+/g, '-')

// The pipeline; a script that plays models and tools; one for the tools alone.
export function writeFiles(c) {
  const files = {
    pipeline: pipelineFile(c.pipeline, slug(c), {
      VIA: c.via ?? 'auto',
      TOOLS: JSON.stringify(Object.keys(c.tools ?? {})),
    }),
    script: join(scratch, `${slug(c)}-all.yaml`),
    tools: join(scratch, `${slug(c)}-tools.yaml`),
  }
  const usage = (u) => ({
    input_tokens: u.input,
    output_tokens: u.output,
    ...(u.cached ? {cached_tokens: u.cached} : {}),
  })
  const tools = c.tools ? {tools: c.tools} : {}
  const replies = c.replies.map((r) => ({
    ...(r.text === undefined && (!r.calls || r.is_cut) ? {text: ''} : r.text === undefined ? {} : {text: r.text}),
    ...(r.calls && !r.is_cut ? {tool_calls: r.calls.map((x) => ({name: x.name, arguments: x.arguments}))} : {}),
    finish_reason: r.finish,
    usage: usage(r.usage),
  }))
  const stage = c.pipeline === 'verdict.yaml' ? 'verdict' : 'answer'
  writeFileSync(files.script, JSON.stringify({models: {[stage]: replies}, repeat: false, ...tools}))
  writeFileSync(files.tools, JSON.stringify(tools))
  return files
}

// form: what is printed, "json", "state" or "events". Without a server nobody is asked: the script has all.
export function runConversation(reeve, c, files, {form, script, server, more = []}) {
  server?.play(c.replies)
  const pipeline = server?.pipeline?.(files.pipeline) ?? files.pipeline
  const args = ['run', pipeline, `--${form}`, '--quiet', '--no-store', '--input', c.input, ...(server?.more ?? []), ...more]
  if (script) args.push('--script', script)
  const model = server?.wire.model ?? 'scripted'
  const env = {PEER_MODEL: model, PEER_URL: server?.baseUrl ?? 'http://127.0.0.1:1', PEER_KEY: KEY}
  return run(reeve, args, {env})
}
