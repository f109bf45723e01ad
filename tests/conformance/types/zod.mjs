// Types of zod 4, by name.
export function types(z) {
  const id = z.string().regex(/^[a-z][a-z0-9_]{2,11}$/)
  const money = z.object({amount: z.number().min(0).max(1e6).multipleOf(0.01), currency: z.enum(['EUR', 'USD', 'CHF'])})
  const address = z.object({street: z.string().min(1), zip: z.string().regex(/^\d{4,5}$/), country: z.string().length(2).optional()})
  const tree = z.object({name: z.string(), get children() { return z.array(tree).max(3) }})
  const list = z.object({value: z.int(), get next() { return list.nullable() }})
  return {
    text: z.string(), bounded: z.string().min(2).max(5), id, email: z.email(), uuid: z.uuid(), url: z.url(),
    date: z.iso.date(), dateTime: z.iso.datetime(), ipv4: z.ipv4(),
    starts: z.string().startsWith('pre-'), ends: z.string().endsWith('.md'), includes: z.string().includes('a/b'),
    lower: z.string().lowercase(), upper: z.string().uppercase(),
    int: z.int(), positive: z.int().positive(), range: z.number().gt(0).lte(10), step: z.number().multipleOf(0.5), int32: z.int32(),
    bool: z.boolean(), nothing: z.null(), any: z.any(), literal: z.literal('on'), literals: z.literal([1, 'two', null]),
    choice: z.enum(['red', 'green', 'blue']), nullable: z.string().nullable(), union: z.union([z.string(), z.int(), z.boolean()]),
    numbers: z.array(z.number()).min(1).max(4), tuple: z.tuple([z.string(), z.int()]), rest: z.tuple([z.string()], z.number()),
    record: z.record(z.string(), z.int()), keyed: z.record(z.string().regex(/^k\d+$/), z.boolean()),
    enumKeys: z.partialRecord(z.enum(['a', 'b']), z.int()),
    money, address, strict: z.strictObject({a: z.string(), b: z.int().optional()}), loose: z.looseObject({a: z.string()}),
    catchall: z.object({a: z.string()}).catchall(z.int()), partial: address.partial(), extended: address.extend({money}),
    withDefault: z.object({n: z.int().default(3)}), both: z.intersection(z.object({a: z.int()}), z.object({b: z.int()})),
    tagged: z.discriminatedUnion('kind', [z.object({kind: z.literal('circle'), r: z.number().positive()}),
      z.object({kind: z.literal('box'), w: z.number(), h: z.number()})]),
    tree, list, order: z.object({id, lines: z.array(z.object({sku: z.string(), n: z.int().min(1)})).nonempty(), to: address, total: money}),
  }
}
