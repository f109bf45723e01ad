// Talks with declared agents, in no vendor's words: turns of a session, each with the replies of the models in order.
//
//   agent   whom the person talks to
//   turns   {says, replies: [{by, text?, calls?, finish, usage}], comes}: `by` is the agent whose request gets that reply,
//           `comes` what `reeve chat --json` tells of the turn
//   tools   what each agent is offered, in order, and nothing else
//   output  of a structured agent: the schema that its requests ask for; outputOn: where a wire needs another form
const usage = (input, output) => ({input, output})
const say = (by, text, input, output) => ({by, text, finish: 'stop', usage: usage(input, output)})
const ask = (by, name, args, input, output, text) => ({
  by,
  ...(text ? {text} : {}),
  calls: [{name, arguments: JSON.stringify(args)}],
  finish: 'tool_calls',
  usage: usage(input, output),
})

// The schema of surveyor, however its parts are said.
const part = {
  type: 'object',
  description: 'One part of the boat',
  properties: {
    state: {type: 'string', enum: ['sound', 'worn', 'rotten'], description: 'How it is'},
    wear: {type: 'number', minimum: 0, maximum: 1, description: 'From new to gone'},
  },
  required: ['state'],
}
const survey = (hull, other, more) => ({
  type: 'object',
  properties: {
    verdict: {type: 'string', description: 'Whether she may sail', enum: ['seaworthy', 'conditional', 'laid up']},
    hull: {...hull, description: 'The hull, below the waterline'},
    others: {type: 'array', description: 'Other parts, the worst first', items: other},
    remark: {type: 'string', description: 'What does not fit elsewhere'},
  },
  required: ['verdict', 'hull'],
  ...more,
  additionalProperties: false,
})
const first = {verdict: 'conditional', hull: {state: 'worn', wear: 0.4}, others: [{state: 'sound'}]}
const better = {verdict: 'seaworthy', hull: {state: 'sound'}, remark: 'Keel bolts are new: ü, 漢字 and 🪵.'}

export const talks = [
  {
    name: 'general',
    agent: 'general',
    tools: {general: ['search', 'action', 'ask_agent', 'remind_me', 'get_user_profile', 'update_user_metadata'], 'sample-agent': ['search', 'action', 'ask_agent']},
    turns: [
      {
        says: 'What should I cook? I have leeks.',
        replies: [
          ask(
            'general',
            'action',
            {type: 'observation', payload: {confidence: 0.8, sources: ['leeks'], session_name: 'Soup for tonight'}},
            620,
            38,
          ),
          say('general', 'Make a leek soup: ½ hour, one pot. 🥣', 700, 14),
        ],
        comes: {text: 'Make a leek soup: ½ hour, one pot. 🥣', usage: {input_tokens: 1320, output_tokens: 52}},
      },
      {
        says: 'Let sample-agent write a haiku about it.',
        replies: [
          ask(
            'general',
            'ask_agent',
            {agent_name: 'sample-agent', input_text: 'Write a haiku.', input_data: {about: 'leek soup', lines: 3}},
            760,
            30,
            'I will have one made.',
          ),
          ask('sample-agent', 'action', {type: 'observation', payload: {confidence: 0.4}}, 240, 16),
          say('sample-agent', 'one pot, half an hour /\nthe leeks have let go /\nsteam', 300, 22),
          say('general', 'There it is.', 860, 4),
        ],
        comes: {
          text: 'I will have one made.\n\nThere it is.',
          usage: {input_tokens: 2160, output_tokens: 72},
        },
      },
      {
        says: 'And what was it that let go?',
        replies: [say('general', 'The leeks did.', 900, 4)],
        comes: {text: 'The leeks did.', usage: {input_tokens: 900, output_tokens: 4}},
      },
    ],
  },
  {
    name: 'surveyor',
    agent: 'surveyor',
    tools: {surveyor: ['action', 'final_result']},
    output: survey({$ref: '#/$defs/part'}, {$ref: '#/$defs/part'}, {$defs: {part}}),
    outputOn: {ollama: survey(part, part, {})}, // which knows no references
    turns: [
      {
        says: 'She leaks a little.',
        replies: [
          ask('surveyor', 'action', {type: 'observation', payload: {confidence: 0.9, sources: ['hull']}}, 400, 20),
          ask('surveyor', 'final_result', {...first, verdict: 'afloat'}, 450, 30),
          // What may be left out may be null, too, and is kept as it was given.
          ask('surveyor', 'final_result', {...first, remark: null}, 520, 30),
        ],
        comes: {text: JSON.stringify({...first, remark: null}), output: {...first, remark: null}, usage: {input_tokens: 1370, output_tokens: 80}},
      },
      {
        says: 'Now she is mended.',
        replies: [ask('surveyor', 'final_result', better, 600, 25)],
        comes: {text: JSON.stringify(better), output: better, usage: {input_tokens: 600, output_tokens: 25}},
      },
    ],
  },
]
