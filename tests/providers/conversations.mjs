// Conversations in no vendor's words. Each is a pipeline, what the model says at each request, and what must come of it.
//
//   replies  {text?, calls?: [{name, arguments}], finish, usage: {input, output, cached?}}; arguments are text, as models
//            write it. is_cut: the last call is not complete, so a script, which has only what was understood, leaves it out
//   tools    what tools answer: the `tools` section of a script
//   not_on   wires that cannot say it, with the reason
//   own      wires whose requests say it with other words, with the reason
//   tells    what a later request must say to the model, in the last messages of a role
//   never    events that must not be there
//   wants    what the run comes to, whoever played the model
const usage = (input, output, cached) => ({input, output, ...(cached ? {cached} : {})})
const say = (text, input, output) => ({text, finish: 'stop', usage: usage(input, output)})
const ask = (calls, input, output, text) => ({
  ...(text ? {text} : {}),
  calls: calls.map(([name, args]) => ({name, arguments: args})),
  finish: 'tool_calls',
  usage: usage(input, output),
})

const city = {type: 'object', properties: {city: {type: 'string'}}, required: ['city'], additionalProperties: false}
const weather = {
  weather: {
    description: 'The weather of a city.',
    input_schema: city,
    calls: [
      {contains: 'Oslo', result: {degrees: -3, sky: 'snow'}},
      {contains: 'Bern', result: {degrees: 11, sky: 'clear'}},
    ],
  },
}
const answered = (response) => ({status: 'completed', outputs: {answer: {response}}})

export const conversations = [
  {
    name: 'text',
    pipeline: 'chat.yaml',
    input: 'What floats?',
    replies: [say('Wood floats: ü, 漢字 and 🪵 too.', 21, 9)],
    wants: answered('Wood floats: ü, 漢字 and 🪵 too.'),
    usage: {calls: 1, input_tokens: 21, output_tokens: 9},
  },
  {
    name: 'text of which a part was cached',
    pipeline: 'chat.yaml',
    input: 'What floats?',
    replies: [{text: 'Wood.', finish: 'stop', usage: usage(1500, 2, 1024)}],
    not_on: {ollama: 'it does not tell what was cached'},
    wants: answered('Wood.'),
    usage: {calls: 1, input_tokens: 1500, output_tokens: 2, cached_tokens: 1024},
  },
  {
    name: 'an object in prose',
    pipeline: 'object.yaml',
    input: 'What floats?',
    replies: [say('Here it is:\n```json\n{"floats": ["wood", "cork"], "sure": true}\n```\n', 30, 20)],
    wants: {status: 'completed', outputs: {answer: {floats: ['wood', 'cork'], sure: true}}},
  },
  {
    name: 'two tools at once, then an answer',
    pipeline: 'tools.yaml',
    input: 'Where is it warmer?',
    tools: weather,
    replies: [
      ask(
        [
          ['weather', '{"city": "Oslo"}'],
          ['weather', '{"city":"Bern"}'],
        ],
        60,
        30,
        'I look both up.',
      ),
      say('It is warmer in Bern.', 140, 7),
    ],
    wants: answered('It is warmer in Bern.'),
    usage: {calls: 2, input_tokens: 200, output_tokens: 37},
  },
  {
    name: 'a tool after the other, without a word',
    pipeline: 'tools.yaml',
    input: 'And in Oslo?',
    tools: {...weather, now: [{result: {hour: 12}}]},
    replies: [ask([['now', '']], 60, 5), ask([['weather', '{"city":"Oslo"}']], 80, 12), say('Snow at noon.', 100, 5)],
    wants: answered('Snow at noon.'),
    usage: {calls: 3, input_tokens: 240, output_tokens: 22},
  },
  {
    name: 'a tool that does not exist',
    pipeline: 'tools.yaml',
    input: 'Where is it warmer?',
    tools: weather,
    replies: [ask([['wether', '{"city":"Oslo"}']], 50, 10), say('I can not tell.', 90, 6)],
    wants: answered('I can not tell.'),
    tells: [{request: 2, role: 'tool', contains: 'wether'}],
  },
  {
    name: 'a tool that fails',
    pipeline: 'tools.yaml',
    input: 'Where is it warmer?',
    tools: {weather: [{error: 'the station is silent'}]},
    replies: [ask([['weather', '{"city":"Oslo"}']], 50, 10), say('The station is silent.', 90, 6)],
    wants: answered('The station is silent.'),
    tells: [{request: 2, role: 'tool', contains: 'the station is silent'}],
  },
  {
    name: 'arguments that are no JSON',
    pipeline: 'tools.yaml',
    input: 'Where is it warmer?',
    tools: weather,
    replies: [
      ask(
        [
          ['weather', '{"city": "Oslo"'],
          ['weather', '{"city":"Bern"}'],
        ],
        50,
        10,
      ),
      ask([['weather', '{"city":"Oslo"}']], 90, 6),
      say('In Bern.', 120, 4),
    ],
    not_on: {ollama: 'arguments are an object there'},
    wants: answered('In Bern.'),
  },
  {
    name: 'arguments that do not fit the schema',
    pipeline: 'tools.yaml',
    input: 'Where is it warmer?',
    tools: weather,
    replies: [
      ask([['weather', '{"town":"Oslo"}']], 50, 10),
      ask([['weather', '{"city":"Oslo"}']], 90, 6),
      say('Here.', 120, 4),
    ],
    wants: answered('Here.'),
    tells: [{request: 2, role: 'tool', contains: 'city'}],
  },
  ...['native', 'tool', 'prompt', 'auto'].map((via) => structured(via)),
  {
    name: 'an answer cut off by its length',
    pipeline: 'chat.yaml',
    input: 'Tell me all.',
    replies: [{text: 'First, there was', finish: 'length', usage: usage(20, 64)}],
  },
  {
    name: 'a tool call cut off by the length',
    pipeline: 'tools.yaml',
    input: 'Where is it warmer?',
    tools: weather,
    replies: [
      {calls: [{name: 'weather', arguments: '{"city": "Os'}], is_cut: true, finish: 'length', usage: usage(20, 64)},
    ],
    not_on: {ollama: 'calls come whole there', capability: 'calls come whole there'},
    never: ['tool_call_start'],
  },
]

// An answer that does not fit, a repair, an answer that does.
function structured(via) {
  const bad = '{"verdict":"perhaps","score":"high"}'
  const good = '{"verdict":"yes","score":7}'
  const byTool = via === 'tool'
  const reply = (text, input, output) =>
    byTool
      ? ask([['final_result', text]], input, output)
      : say(via === 'prompt' ? `My verdict: ${text}` : text, input, output)
  return {
    name: `structured output, ${via}, with a repair`,
    pipeline: 'verdict.yaml',
    via,
    ...(via === 'prompt' ? {own: {capability: 'it is given the schema beside the prompt'}} : {}),
    input: 'Does wood float?',
    replies: [reply(bad, 40, 10), reply(good, 80, 12)],
    wants: {status: 'completed', outputs: {verdict: {verdict: 'yes', score: 7}}},
    usage: {calls: 2, input_tokens: 120, output_tokens: 22},
    tells: [{request: 2, contains: 'verdict'}],
  }
}
