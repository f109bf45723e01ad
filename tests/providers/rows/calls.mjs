// Tool calls as servers send them; what comes back to the model is compared.
import {delta, openCall, callArguments, body, firstThen, quick} from './serve.mjs'

export const calls = [
  {
    name: 'calls-interleaved',
    tools: true,
    serve: firstThen(
      body(
        delta({role: 'assistant', content: null}) +
          delta(openCall(0, 'a', 'weather')) +
          delta(openCall(1, 'b', 'weather')) +
          delta(callArguments(1, '{"city":')) +
          delta(callArguments(0, '{"city":"O')) +
          delta(callArguments(1, '"Bern"}')) +
          delta(callArguments(0, 'slo"}')) +
          delta({}, 'tool_calls') +
          'data: [DONE]\n\n',
      ),
    ),
    want: {asked: ['{"city":"Oslo"}', '{"city":"Bern"}']},
  },
  {
    name: 'calls-out-of-order',
    tools: true,
    serve: firstThen(
      body(
        delta(openCall(1, 'b', 'weather')) +
          delta(callArguments(1, '{"city":"Bern"}')) +
          delta(openCall(0, 'a', 'weather')) +
          delta(callArguments(0, '{"city":"Oslo"}')) +
          delta({}, 'tool_calls') +
          'data: [DONE]\n\n',
      ),
    ),
    want: {asked: ['{"city":"Oslo"}', '{"city":"Bern"}'], anyOrder: true},
  },
  {
    name: 'calls-whole-without-ids',
    tools: true,
    serve: firstThen(
      body(
        delta({
          tool_calls: [
            {type: 'function', function: {name: 'weather', arguments: '{"city":"Oslo"}'}},
            {type: 'function', function: {name: 'weather', arguments: '{"city":"Bern"}'}},
          ],
        }) +
          delta({}, 'stop') +
          'data: [DONE]\n\n',
      ),
    ),
    want: {asked: ['{"city":"Oslo"}', '{"city":"Bern"}']},
  },
  {
    name: 'more-calls-than-anyone-makes',
    tools: true,
    serve: body(
      Array.from({length: 2000}, (_, i) => delta(openCall(i, `c${i}`, 'weather'))).join('') + delta({}, 'tool_calls'),
    ),
    knobs: quick,
    want: {kind: 'protocol'},
  },
]
