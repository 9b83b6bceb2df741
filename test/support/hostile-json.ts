/** Generates values that match a schema and hostile values, and renders them as JSON. */

import fc from 'fast-check'
import { z } from 'zod'
import { placeholderFor } from './hostile-resources.ts'

/** JSON text that replaces a value. It is created only when it is rendered, because it may be large. */
export class RawJson {
  readonly label: string
  readonly make: () => string

  constructor(label: string, make: () => string) {
    this.label = label
    this.make = make
  }

  toJSON(): string {
    return `<${this.label}>`
  }
}

/** Renders a value as JSON; renders a `RawJson` as its text. */
export function renderJson(value: unknown): string {
  if (value instanceof RawJson) return value.make()
  if (Array.isArray(value)) return `[${value.map(renderJson).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const fields = Object.entries(value).map(([key, field]) => `${JSON.stringify(key)}:${renderJson(field)}`)
  return `{${fields.join()}}`
}

const items = [
  ...['{}', '[]', '0', '""', 'null', '"x"', '1.5', '[[]]', '{"a":{}}'],
  '{"type":"text","text":"x"}',
  '{"type":"x"}',
  '{"role":"user","content":"x"}',
  '{"role":"user"}',
  '{"type":"message","role":"user","content":"x"}',
  '{"type":"function","function":{"name":"x","parameters":{}}}',
  '{"id":"x","type":"function","function":{"name":"x","arguments":"{}"}}',
  '{"type":"input_text","text":"x"}',
]
const list = fc
  .record({
    item: fc.constantFrom(...items),
    bytes: fc.constantFrom(500, 20_000, 48_000, 300_000, 1_900_000),
  })
  .map(({ item, bytes }) => {
    const count = Math.ceil(bytes / (item.length + 1))
    return new RawJson(`${count} × ${item}`, () => `[${Array(count).fill(item).join()}]`)
  })

const keys = fc
  .record({ count: fc.constantFrom(50, 2_000, 40_000), value: fc.constantFrom('0', '""', '{}', '[]') })
  .map(({ count, value }) => {
    const fields = () => Array.from({ length: count }, (_, index) => `"k${index}":${value}`)
    return new RawJson(`${count} keys with ${value}`, () => `{${fields().join()}}`)
  })

const nested = fc
  .record({
    depth: fc.constantFrom(15, 30, 58, 66, 3_000, 300_000),
    brackets: fc.constantFrom(
      ['[', ']'],
      ['{"a":', '}'],
      ['{"properties":{"a":', '}}'],
      ['{"anyOf":[', ']}'],
    ),
  })
  .map(({ depth, brackets: [open = '', close = ''] }) => {
    return new RawJson(`${depth} × ${open}`, () => `${open.repeat(depth)}0${close.repeat(depth)}`)
  })

const pieces = [
  ...[
    'a',
    'a ',
    ' ',
    '\\n',
    '\\u0000',
    '\\ud800',
    '\\"',
    '\\\\',
    '😀',
    'é',
    'a.',
    'a@',
    '-',
    '9',
    '((',
    '[[',
  ],
  ...[
    '- \\n',
    'a: ',
    '{a: ',
    '&a [*a,',
    '# ',
    '---\\n',
    'a|',
    '%00',
    '../',
    'data:',
    '<a>',
    'a,',
    '__proto__.',
  ],
]
const string = fc
  .record({
    piece: fc.constantFrom(...pieces),
    bytes: fc.constantFrom(300, 9_000, 66_000, 250_000, 1_900_000),
  })
  .map(({ piece, bytes }) => {
    const count = Math.ceil(bytes / piece.length)
    return new RawJson(`text of ${count} × ${piece}`, () => `"${piece.repeat(count)}"`)
  })

const scalar = fc.constantFrom<unknown>(
  ...[null, true, false, 0, -1, 1.5, 2 ** 53, 1e308, '', 'x', '\0', '\ud800', '\u202e', [], {}, [[]]],
  ...['1e400', '-0', '9'.repeat(400), '{"__proto__":{"a":1}}', '{"constructor":{"prototype":{}}}'].map(
    (text) => new RawJson(text, () => text),
  ),
  new RawJson('a number of 1,900,000 digits', () => '9'.repeat(1_900_000)),
  new RawJson('a fraction of 1,900,000 digits', () => `0.${'1'.repeat(1_900_000)}`),
)

/** Generates values that storage, parsers, validators or renderers may not handle correctly. */
export const hostileValue: fc.Arbitrary<unknown> = fc.oneof(list, keys, nested, string, scalar)

interface JsonSchema {
  readonly [keyword: string]: unknown
}

/** Generates values that match an operation's input schema, but ignores its patterns and formats. */
export function fitting(input: z.ZodType): fc.Arbitrary<unknown> {
  const document = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }) as JsonSchema
  return fromSchema(document, (document.$defs ?? {}) as Readonly<Record<string, JsonSchema>>)
}

const anyJson = fc.jsonValue({ maxDepth: 2 })

function fromSchema(
  schema: JsonSchema,
  definitions: Readonly<Record<string, JsonSchema>>,
): fc.Arbitrary<unknown> {
  const inner = (given: unknown) => fromSchema(given as JsonSchema, definitions)
  const options = schema.anyOf ?? schema.oneOf
  if (typeof schema.$ref === 'string') return inner(definitions[schema.$ref.split('/').at(-1) ?? ''] ?? {})
  if (Array.isArray(schema.enum)) return fc.constantFrom<unknown>(...schema.enum)
  if ('const' in schema) return fc.constant(schema.const)
  if (Array.isArray(options)) return fc.oneof(...options.map(inner))
  switch (schema.type) {
    case 'string':
      return fc.constantFrom('x', 'user', 'mock', 'function', 'text', '1', 'name: A\ninstructions: B\n')
    case 'integer':
    case 'number':
      return fc.integer({ min: Number(schema.minimum ?? 1), max: Number(schema.minimum ?? 1) + 1 })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return fc.array(inner(schema.items ?? {}), { minLength: 1, maxLength: 2 })
    case 'object':
      return fitObject(schema, inner)
    default:
      return anyJson
  }
}

function fitObject(
  schema: JsonSchema,
  inner: (given: unknown) => fc.Arbitrary<unknown>,
): fc.Arbitrary<unknown> {
  const fields = Object.entries((schema.properties ?? {}) as Readonly<Record<string, JsonSchema>>)
  const required = (schema.required ?? []) as readonly string[]
  return fc.record(
    Object.fromEntries(
      fields.map(([name, field]) => [
        name,
        // Omits most optional fields, because the server reports only the first invalid field.
        required.includes(name) ? known(name, inner(field)) : seldom(known(name, inner(field))),
      ]),
    ),
  )
}

/** Generates the id of an existing resource most of the time, if the field names one. */
function known(name: string, field: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const placeholder = placeholderFor(name)
  if (placeholder === undefined) return field
  return fc.oneof({ weight: 4, arbitrary: fc.constant(placeholder) }, { weight: 1, arbitrary: field })
}

function seldom(field: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 6, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: field })
}

/** Replaces or adds a value. `steps` selects its place in the input. */
export function withHostileValue(input: unknown, value: unknown, steps: readonly number[]): unknown {
  const [step, ...others] = steps
  if (step === undefined || typeof input !== 'object' || input === null || input instanceof RawJson)
    return value
  if (Array.isArray(input)) {
    const at = step % (input.length + 1)
    return input.toSpliced(at, 1, withHostileValue(input[at], value, others))
  }
  const names = [...Object.keys(input), 'metadata']
  const name = names[step % names.length] as string
  return { ...input, [name]: withHostileValue((input as Record<string, unknown>)[name], value, others) }
}
