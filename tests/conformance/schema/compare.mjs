// compare.mjs WORK_DIR JUDGE: the generated schema, as ajv reads it, and the loader must judge the same documents equally.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const [modules, judge] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const Ajv2020 = createRequire(`${modules}/`)('ajv/dist/2020.js').default;

// Every key once. Names refer to "x", so that a value replaced by "x" still refers to something.
const full = {
  name: 'x', description: 'd', mock: false, default_run_mode: 'parallel',
  capabilities: ['c', { name: 'n', config: { k: [1] }, isolation: 'process' }, { path: 'p.so' }],
  models: {
    x: 'ollama:m',
    r: {
      model: 'p:m', provider: 'p', temperature: 1, max_tokens: 5, max_request_bytes: 9, optional: true, fallback: ['x'],
      price: { input: 1, output: 2.5, cached: 0, cache_write: 3 }, options: { mine: 1 }, base_url: 'u', api_key: 'k',
      organization: 'o', project: 'p', api_version: 'v', headers: { h: 'v' }, extra_body: { b: 1 },
      quirks: {
        old_max_tokens: true, developer_role: true, no_stream_usage: true, no_parallel_calls: true, no_sampling: true,
        no_tools: true, no_native_output: true, no_strict_output: true,
      },
      connect_timeout_ms: 1, first_byte_timeout_ms: 2, idle_timeout_ms: 3, max_attempts: 4, max_retry_wait_ms: 0,
      max_concurrent: 5, requests_per_minute: 6, tokens_per_minute: 7, ca_file: 'c', proxy: 'q',
    },
  },
  budget: { usd: 0.5 },
  max_iterations: 2, max_llm_calls: 3, max_agent_hops: 4, default_timeout_seconds: 5,
  clarification_resume_stage: 'x', confirmation_resume_stage: 'x', agent_review_resume_stage: 'x', agent_review_reject_stage: 'x',
  agents: [
    { name: 'x' },
    {
      name: 'y', stage_order: -2, requires: ['x'], after: ['x'], join_strategy: 'any', has_llm: true, has_tools: true,
      has_policies: true, tool_access: 'read', allowed_tools: ['t'], model_role: 'x', prompt_key: 'x', temperature: 0.5,
      max_tokens: 9, output_key: 'o', output_mode: 'text', required_output_fields: ['f'],
      routing_rules: [{ condition: 'c', value: { a: [1] }, target: 'end' }, { when: 'output.a == 1', target: 'x' }],
      default_next: 'x', error_next: 'end', routing_function: 'c.f', timeout_seconds: 0, max_retries: 1, max_visits: 2,
      plan_from: 'x', policies: ['c.p'], pre_process: 'c.a', post_process: 'c.b', mock_handler: 'c.m', mock: true,
      before_model: 'c.a', after_model: ['c.a', 'c.b'], before_tool: 'c.a', after_tool: ['c.b'],
    },
    {
      name: 'z', allowed_tools: { a: true, b: false }, has_llm: true, model_role: 'x', output_schema: { type: 'object' },
      output_via: 'tool', max_repairs: 0, max_rounds: 1, max_bad_calls: 0, max_context_tokens: 9,
      limits: { request_limit: 1, tool_calls_limit: 2, input_tokens_limit: 3, output_tokens_limit: 4, total_tokens_limit: 5 },
    },
    {
      agent: 'helper', name: 'w', structured_output: true, joins_session: false, child_text: 'parent', child_text_resets: true,
    },
    { agent: 'sorter' },
  ],
  schema_dir: 'd', max_delegation_depth: 0, max_delegation_repeats: 16,
  edge_limits: [{ from: 'x', to: 'y', max_count: 2 }],
  prompts: { x: 'hello {{raw_input}}', f: { file: 'package.json' } },
  execution: {
    max_plan_steps: 1, max_tool_retries: 0, max_llm_retries: 1, max_loop_iterations: 1, max_replan_iterations: 1,
    max_loop_back_rejections: 1, llm_timeout: 1.5, executor_timeout: 2, tool_timeout: 3, agent_timeout: 4,
    delegation_timeout: 5, agent_request_limit: 4, agent_token_limit: 9000,
    clarification_threshold: 0.5, high_confidence_threshold: 1, llm_seed: -7, require_confirmation_for_destructive: true,
    replan_on_partial_success: true, strict_transition_validation: true, enable_idempotency: true, idempotency_ttl_ms: 5,
    enforce_idempotency_for_tools: true, enforce_idempotency_for_agents: true, meta_validation_enabled: true,
    meta_validation_delay: 0, enable_loop_back: true, enable_arbiter: true, skip_arbiter_for_read_only: true, log_level: 'WARN',
  },
  state: [{ key: 'o', merge: 'append' }],
  retry_archive: ['x'], retry_clear: [], stage_reset: ['x'],
  response: { output_key: 'x', field: 'f' },
  tests: [{
    name: 't', input: { raw_input: 'r', user_id: 'u', session_id: 's', metadata: { a: 1 } }, envelope: { iteration: 1 },
    script: { models: {} }, mode: 'sequential', mock: true,
    expect: {
      status: 'completed', terminal_reason: 'completed', visited: ['x', 'y'], output: { o: { a: 1 } }, response: 'r',
      response_contains: ['a'], interrupt: 'confirmation', questions: ['q'], errors: [{ agent: 'x', contains: 'c' }],
      llm_calls: 1, iteration: 0, max_duration_ms: 5,
    },
  }, { name: 'u', script: 'x', expect: { errors: 2, response_contains: 'a' } }],
};

// The keys of groups, lists, inner pipelines and questions, which a run by dependencies cannot have.
const routed = {
  name: 'x', models: { x: 'ollama:m' }, inputs: ['a', 'b'],
  agents: [
    {
      name: 'x', set: { a: 'state.k', b: [1, { c: null }] },
      default_next: ['y', { target: 'z', when: 'output.a == 1' }],
      routing_rules: [{ condition: 'c', value: 1, target: ['y', { target: 'z' }] }],
    },
    {
      name: 'y', has_llm: true, model_role: 'x', for_each: 'outputs.x.b', max_items: 3, max_parallel: 2,
      on_item_error: 'collect', default_next: 'w', error_next: 'w',
    },
    { name: 'z', pipeline: 'inner.json', inputs: { a: 'outputs.x.a', b: 2 }, outputs: { o: 'outputs.i.v' }, default_next: 'w' },
    {
      name: 'w', join: { wait: 'all', failures: 'collect', merge: { y: 'append', z: 'merge_dict' } }, on_denied: 'tell_model',
      has_llm: true, has_tools: true, model_role: 'x',
      ask: { question: 'go on, {{raw_input}}?', show: 'outputs.w.v', options: ['yes', 'no'], expires_seconds: 60 },
      on_answer: { yes: 'v', no: 'end', timeout: 'end' },
    },
    { name: 'v', set: { n: 1 }, default_next: ['u', 't'] },
    { name: 'u', set: { n: 1 }, default_next: 's', ask: { question: 'what?', options: 'text' } },
    { name: 't', set: { n: 1 }, default_next: 's' },
    { name: 's', join: 1 },
  ],
};

const replacements = [null, true, 0, -1, 1, 2.5, 1e7, '', 'x', 'all', 'end', [], ['x'], [5], {}, { x: 1 }, { name: 'x' }];

function* mutants(value, path, put) {
  for (const r of replacements) yield { path: `${path} := ${JSON.stringify(r)}`, at: path, doc: put(r) };
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      yield* mutants(value[i], `${path}/${i}`, (v) => put([...value.slice(0, i), v, ...value.slice(i + 1)]));
    }
  } else if (value && typeof value === 'object') {
    yield { path: `${path} + unknown`, at: path, doc: put({ ...value, qqq: 1 }) };
    for (const key of Object.keys(value)) {
      const { [key]: gone, ...rest } = value;
      yield { path: `${path} - ${key}`, at: `${path}/${key}`, doc: put(rest) };
      yield* mutants(value[key], `${path}/${key}`, (v) => put({ ...value, [key]: v }));
    }
  }
}

// What a schema cannot know: names that refer to something, names that must differ, expressions, files.
const loaderOnly = [
  /which is not a stage$/, /which is not a role of models$/, /cannot (require|be after) itself$/, /duplicate agent name/,
  /the name is reserved/, /share the output_key/, /is limited twice/, /is declared twice/, /dependency cycle/,
  /needs a model_role$/, /: "when"/, /no regular file|cannot open/, /the name of a capability is empty$/,
  /is for the reply of a model/, /must describe an object$/, /needs output_mode json/, /is a key of the model itself$/,
  /cannot be its own fallback$/, /leads back to it$/, /this model costs is not known$/, /must be at least 0\.000001/,
  /for declared agents, and the stage has none$/, /a declared agent calls a model$/, /of a declared agent makes it$/,
  /exclude each other$/, /has lists of targets or joins$/, /which no stage makes$|can have no value/,
  /unknown variable "/, /: empty expression$/, /no branch routes to this join$/,
  /the branch ".*" (is not a stage|is the stage itself|comes before it in stage order)$/, /not a choice of the question$/,
  /(wants|does not know) the input "/, /it routes to ".*" in a group of/, /and no join merges it$/, /no model calls tools here$/,
  /is for a stage with (pipeline|for_each)$/, /the stage has no ask$/, /for_each needs max_items$/,
  /failures is for joins that wait for all branches$/,
];

function main() {
  const schema = JSON.parse(spawnSync(judge, ['--schema'], { encoding: 'utf8' }).stdout);
  const validate = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, allErrors: false }).compile(schema);
  const cases = [{ path: 'full', doc: full }, { path: 'routed', doc: routed }, ...mutants(full, '', (v) => v),
    ...mutants(routed, 'routed', (v) => v)];
  const run = spawnSync(judge, [here], {
    input: cases.map((c) => `${JSON.stringify(c.doc)}\n`).join(''), encoding: 'utf8', maxBuffer: 1 << 28,
  });
  const answers = run.stdout.split('\n').slice(0, -1);
  if (run.status !== 0 || answers.length !== cases.length) throw new Error(`judge: ${run.status}, ${answers.length} answers`);

  let accepted = 0;
  let skipped = 0;
  const differences = [];
  cases.forEach((c, i) => {
    const bySchema = validate(c.doc);
    const byLoader = answers[i] === 'ok';
    if (bySchema && byLoader) accepted++;
    if (bySchema === byLoader) return;
    if (bySchema && loaderOnly.some((r) => r.test(answers[i]))) skipped++;
    else differences.push(`${c.path}: schema ${bySchema ? 'accepts' : JSON.stringify(validate.errors[0])}, loader: ${answers[i]}`);
  });
  console.log(`${cases.length} documents, ${accepted} accepted by both, ${skipped} with faults that only the loader can know`);
  for (const d of differences.slice(0, 20)) console.log(d);
  const whole = answers[0] === 'ok' && answers[1] === 'ok';
  if (!whole) console.log(`the full document: ${answers[0]}, the routed one: ${answers[1]}`);
  if (accepted < 100 || skipped > cases.length / 5) console.log('the comparison says too little');
  process.exit(differences.length === 0 && whole && accepted >= 100 && skipped <= cases.length / 5 ? 0 : 1);
}

main();
