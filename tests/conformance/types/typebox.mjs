// Types of typebox, by name.
export function types(Type) {
  const person = Type.Object({name: Type.String({minLength: 1}), age: Type.Optional(Type.Integer({minimum: 0, maximum: 150}))})
  return {
    person, closed: Type.Object({a: Type.String()}, {additionalProperties: false}),
    recursive: Type.Recursive((This) => Type.Object({id: Type.String(), nodes: Type.Array(This, {maxItems: 3})}), {$id: 'Node'}),
    record: Type.Record(Type.String(), Type.Number()), patterned: Type.Record(Type.RegExp(/^v\d+$/), Type.Boolean()),
    templated: Type.TemplateLiteral([Type.Literal('item-'), Type.Union([Type.Literal('a'), Type.Literal('b')])]),
    unevaluated: Type.Intersect([Type.Object({a: Type.String()}), Type.Object({b: Type.Number()})], {unevaluatedProperties: false}),
    composite: Type.Composite([person, Type.Object({email: Type.String({format: 'email'})})]),
    contains: Type.Array(Type.Number(), {contains: Type.Literal(7), minContains: 1, maxContains: 2}),
    unique: Type.Array(Type.String(), {uniqueItems: true}), tuple: Type.Tuple([Type.String(), Type.Number()]),
    negated: Type.Not(Type.String()), conditional: Type.Unsafe({type: 'object', properties: {card: {type: 'boolean'}},
      if: {properties: {card: {const: true}}, required: ['card']}, then: {required: ['number']}, else: {not: {required: ['number']}}}),
    dependent: Type.Unsafe({type: 'object', dependentRequired: {a: ['b']}, dependentSchemas: {c: {properties: {d: {type: 'integer'}}}}}),
  }
}
