/** Tests that every list, record and string in the input of an operation has a size limit. */
import { expect, test } from 'vitest'
import { z } from 'zod'
import { boundElsewhere, jsonObject, label, longText, recordOf } from '../../src/lib/schema-bounds.ts'
import { listOperations, restOperations } from '../../src/server/api.ts'

/** String formats that limit the length of a string. */
const shortFormats = new Set(['date', 'guid', 'uuid'])
const lengthChecks = new Set(['max_length', 'length_equals'])
/** Schema types that the check does not require to have a size limit. */
const plainKinds = new Set([
  'any',
  'boolean',
  'custom',
  'enum',
  'int',
  'literal',
  'never',
  'null',
  'number',
  'transform',
  'undefined',
  'unknown',
])

/** Returns the paths of lists, records and strings without a limit, and of unknown kinds of schemas. */
function listUnbounded(schema: z.core.$ZodType, path: string, seen = new Set<z.core.$ZodType>()): string[] {
  if (seen.has(schema)) return []
  seen.add(schema)
  const walk = (inner: z.core.$ZodType, step: string) => listUnbounded(inner, path + step, seen)
  const { def } = (schema as z.core.$ZodTypes)._zod
  const own = isBounded(schema) ? [] : [`${path}: ${def.type}`]
  switch (def.type) {
    case 'string':
      return own
    case 'array':
      return [...own, ...walk(def.element, '[]')]
    case 'record':
      return [...own, ...walk(def.keyType, '{key}'), ...walk(def.valueType, '{}')]
    case 'object':
      return [
        ...Object.entries(def.shape).flatMap(([name, field]) => walk(field, `.${name}`)),
        ...(def.catchall === undefined ? [] : walk(def.catchall, '.*')),
      ]
    case 'union':
      return def.options.flatMap((option, index) => walk(option, `|${index}`))
    case 'intersection':
      return [...walk(def.left, ''), ...walk(def.right, '')]
    case 'pipe':
      return [...walk(def.in, ''), ...walk(def.out, '')]
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
    case 'nonoptional':
    case 'readonly':
    case 'catch':
      return walk(def.innerType, '')
    default:
      return plainKinds.has(def.type) ? [] : [`${path}: unknown kind ${def.type}`]
  }
}

function isBounded(schema: z.core.$ZodType): boolean {
  const { def } = schema._zod
  if (boundElsewhere.get(schema) !== undefined) return true
  if ('format' in def && shortFormats.has(String(def.format))) return true
  return def.checks?.some(({ _zod }) => lengthChecks.has(_zod.def.check)) === true
}

const inputs = [
  ...listOperations().map(({ name, operation }) => [name, operation.input] as const),
  ...restOperations.flatMap(({ id, request }) =>
    [request?.bodySchema, request?.path].flatMap((schema) =>
      schema === undefined ? [] : [[id, schema] as const],
    ),
  ),
]

test('every list, record and string in the input of an operation has a size limit', () => {
  expect(inputs.length).toBeGreaterThan(40)
  expect(inputs.flatMap(([name, schema]) => listUnbounded(schema, name))).toEqual([])
})

test('the check for size limits finds lists, records and strings without a limit', () => {
  const schema = z.looseObject({
    list: z.array(label()).nullish(),
    either: z.union([z.string(), z.array(z.string().max(1)).max(1)]),
    record: z.record(label(), z.strictObject({ name: z.string() })).optional(),
    checked: z.preprocess((value) => value, z.string().regex(/^a+$/)),
    lazy: z.lazy(() => z.string()),
    tuple: z.tuple([z.string()]).optional(),
    rest: z.object({}).catchall(z.string()),
  })
  expect(listUnbounded(schema, 'x')).toEqual([
    'x.list: array',
    'x.either|0: string',
    'x.record: record',
    'x.record{}.name: string',
    'x.checked: string',
    'x.lazy: unknown kind lazy',
    'x.tuple: unknown kind tuple',
    'x.rest.*: string',
  ])
})

test('the check for size limits accepts maximum lengths, fixed formats and schemas with a limit elsewhere', () => {
  const schema = z.object({
    list: z.array(z.int()).min(1).max(3).default([]),
    text: longText().min(1).optional(),
    day: z.iso.date(),
    id: z.guid().toLowerCase(),
    schema: jsonObject().meta({ description: 'A JSON Schema.' }),
    metadata: recordOf(label(), label(), 16).nullish(),
  })
  expect(listUnbounded(schema, 'x')).toEqual([])
})
