// compare.mjs MODULES REEVE: random values against random schemas, judged by ajv and by plan_validate (V10), plan_resolve (R7)
// and tool_result_output (N5).
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';

const [modules, reeve] = process.argv.slice(2);
const Ajv2020 = createRequire(`${modules}/`)('ajv/dist/2020.js').default;
const COUNT = process.env.REEVE_SOAK ? 4000 : 400;

let state = 20260728;
function below(n) {
  state = (Math.imul(state, 1103515245) + 12345) >>> 0;
  return Math.floor((state / 4294967296) * n);
}
const pick = (list) => list[below(list.length)];
const names = ['a', 'b', 'c d'];

function schemaOf(depth) {
  const leaves = [
    { type: 'string', maxLength: 3 }, { type: 'integer', minimum: 2 }, { type: 'number', multipleOf: 0.5 }, { type: 'boolean' },
    { type: ['string', 'null'] }, { enum: ['x', 1, null] }, { const: [1] }, {}, true, { type: 'string', pattern: '^x' },
  ];
  if (depth > 2 || below(3) === 0) return pick(leaves);
  switch (below(6)) {
    case 0: return { type: 'array', items: schemaOf(depth + 1), maxItems: 2, uniqueItems: below(2) === 0 };
    case 1: return { anyOf: [schemaOf(depth + 1), schemaOf(depth + 1)] };
    case 2: return { oneOf: [schemaOf(depth + 1), schemaOf(depth + 1)] };
    case 3: return { not: schemaOf(depth + 1) };
    default: return objectOf(depth);
  }
}

function objectOf(depth) {
  const properties = {};
  for (const name of names.slice(0, 1 + below(3))) properties[name] = schemaOf(depth + 1);
  const schema = { type: 'object', properties };
  if (below(2)) schema.required = Object.keys(properties).slice(0, 1 + below(2));
  if (below(2)) schema.additionalProperties = below(2) ? false : schemaOf(depth + 1);
  if (below(5) === 0) schema.if = { required: ['a'] }, schema.then = { required: ['b'] };
  return schema;
}

function valueOf(depth) {
  if (depth > 2 || below(2)) return pick(['x', 'long text', 1, 2, 2.5, true, null, [1], [], 'xy', 7, ['x', 'x']]);
  if (below(3) === 0) return [valueOf(depth + 1), valueOf(depth + 1)].slice(0, below(3));
  return recordOf(depth);
}

function recordOf(depth) {
  const value = {};
  for (const name of names) if (below(2)) value[name] = valueOf(depth + 1);
  if (below(6) === 0) value.other = valueOf(depth + 1);
  return value;
}

function ask(name, inputs) {
  const run = spawnSync(reeve, ['fn', name, '--ndjson'], {
    input: inputs.map((one) => `${JSON.stringify(one)}\n`).join(''), encoding: 'utf8', maxBuffer: 1 << 28,
  });
  const answers = run.stdout.split('\n').slice(0, -1).map((line) => JSON.parse(line));
  if (answers.length !== inputs.length) throw new Error(`${name}: ${answers.length} answers of ${inputs.length}: ${run.stderr}`);
  return answers.map((answer) => {
    if (!answer.ok) throw new Error(`${name}: ${JSON.stringify(answer)}`);
    return answer.result;
  });
}

const cases = [];
while (cases.length < COUNT) {
  const schema = objectOf(0);
  const validate = new Ajv2020({ strict: false }).compile(schema);
  for (let i = 0; i < 4; i++) {
    const value = recordOf(0);
    cases.push({ schema, value, fits: validate(value) });
  }
}
const judged = {
  plan_validate: ask('plan_validate', cases.map(({ schema, value }) => ({
    plan: { type: 'tool_calls', calls: [{ tool_name: 't', arguments: value }] }, tools: [{ name: 't', inputSchema: schema }],
  }))).map((result) => result.valid),
  plan_resolve: ask('plan_resolve', cases.map(({ schema, value }) => ({
    arguments: Object.fromEntries(Object.keys(value).map((name) => [name, `$0.output["${name}"]`])),
    outputs: [{ success: true, output: value }], input_schema: schema,
  }))).map((result) => 'arguments' in result),
  tool_result_output: ask('tool_result_output', cases.map(({ schema, value }) => ({
    result: { structuredContent: value }, output_schema: schema,
  }))).map((result) => result.success),
};

let differences = 0;
for (const [name, verdicts] of Object.entries(judged)) {
  cases.forEach(({ schema, value, fits }, i) => {
    if (verdicts[i] === fits) return;
    if (differences++ < 10) console.log(`${name}: ${JSON.stringify(value)} against ${JSON.stringify(schema)}: ajv ${fits}`);
  });
}
const accepted = cases.filter((one) => one.fits).length;
console.log(`${cases.length} values, ${accepted} fit, ${differences} differences`);
process.exit(differences === 0 && accepted > cases.length / 20 && accepted < cases.length ? 0 : 1);
