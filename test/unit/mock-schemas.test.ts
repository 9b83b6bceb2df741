/** Tests that the mock backend's structured responses match their schemas. */

import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { failureOf, neverAborted } from '../support/backend.ts'
import { backend, chatRequest, streamChunks, textOf } from '../support/mock.ts'

describe('structured mock responses', () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  const tree = {
    $ref: '#/$defs/node',
    $defs: {
      node: {
        type: 'object',
        properties: {
          next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] },
          children: { type: 'array', items: { $ref: '#/$defs/node' } },
        },
        required: ['next', 'children'],
        additionalProperties: false,
      },
    },
  }

  async function instanceOf(schema: unknown) {
    const response_format = { type: 'json_schema', json_schema: { name: 'x', schema } }
    return JSON.parse((await textOf(chatRequest('hi type=7', { response_format }))) ?? '')
  }

  test.each<[string, object | boolean]>([
    ['no restrictions', true],
    ['a recursive reference', tree],
    [
      'a reference to the document',
      { type: 'object', properties: { up: { anyOf: [{ $ref: '#' }, { type: 'null' }] } }, required: ['up'] },
    ],
    ['an encoded reference', { $ref: '#/$defs/a~1b%20c', $defs: { 'a/b c': { const: 4 } } }],
    [
      'a base type that its subtype contains',
      {
        allOf: [{ $ref: '#/$defs/b' }, { properties: { b: { $ref: '#/$defs/b' } }, required: ['b'] }],
        $defs: { b: { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] } },
      },
    ],
    [
      'allOf bounds',
      {
        allOf: [
          { type: 'number', minimum: 5 },
          { type: 'integer', minimum: 3, maximum: 5 },
        ],
      },
    ],
    [
      'allOf bounds in reverse order',
      {
        allOf: [{ type: 'integer', minimum: 3, maximum: 9 }, { type: 'number', minimum: 5 }, { maximum: 5 }],
      },
    ],
    [
      'anyOf and oneOf together',
      {
        type: 'object',
        anyOf: [{ required: ['a'] }],
        oneOf: [
          { properties: { k: { const: 'x' } }, required: ['k'] },
          { properties: { k: { const: 'y' } }, required: ['k'] },
        ],
      },
    ],
    ['a contradictory option', { enum: ['b'], anyOf: [{ const: 'a' }, { const: 'b' }] }],
    [
      'an impossible option',
      { anyOf: [false, { type: 'string', minLength: 3, maxLength: 2 }, { type: 'boolean' }] },
    ],
    ['enum values of one type', { type: 'integer', enum: ['a', null, 1.5, 2] }],
    ['null as one of two types', { type: ['null', 'array'], minItems: 2 }],
    ['exclusive bounds', { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 0.001 }],
    ['negative bounds', { type: 'integer', maximum: -10, multipleOf: 7 }],
    ['a multiple of a fraction', { type: 'number', minimum: 10.1, multipleOf: 0.25 }],
    ['lengths', { type: 'string', minLength: 30, maxLength: 31 }],
    ['a short text', { type: 'string', maxLength: 1 }],
    [
      'different items',
      { type: 'array', minItems: 4, uniqueItems: true, items: { anyOf: [{ type: 'string' }] } },
    ],
    [
      'different numbers',
      { type: 'array', minItems: 3, uniqueItems: true, items: { type: 'integer', minimum: 0, maximum: 2 } },
    ],
    [
      'different numbers below a bound',
      {
        type: 'array',
        minItems: 3,
        uniqueItems: true,
        items: { type: 'integer', minimum: 0, exclusiveMaximum: 3 },
      },
    ],
    [
      'different objects',
      {
        type: 'array',
        minItems: 3,
        uniqueItems: true,
        items: {
          type: 'object',
          properties: { kind: { enum: ['a'] }, id: { type: 'string', format: 'uuid' } },
          required: ['kind', 'id'],
        },
      },
    ],
    ['no items', { type: 'array', maxItems: 0, items: { type: 'string' } }],
    ['a tuple', { prefixItems: [{ type: 'string' }, { type: 'boolean' }], items: false, minItems: 2 }],
    ['an undeclared required property', { required: ['a'], additionalProperties: { type: 'number' } }],
    [
      'a minimum number of properties',
      { minProperties: 3, properties: { a: { type: 'null' } }, additionalProperties: { type: 'integer' } },
    ],
    [
      'a property named __proto__',
      JSON.parse('{"properties":{"__proto__":{"type":"string"}},"required":["__proto__","constructor"]}'),
    ],
    [
      'a pattern',
      { type: 'string', pattern: '^(?:SKU|sku)-[A-F\\d]{4}[^a-z]?(x|y)+\\.\\u0041$', minLength: 15 },
    ],
    [
      'a pattern with a hyphen at the end of a class',
      { type: 'string', pattern: '^[\\w.%+-]+@[^\\s@]+(?!x)$' },
    ],
  ])('match a schema with %s', async (_, schema) => {
    const instance = await instanceOf(schema)
    expect(ajv.validate(schema, instance), JSON.stringify(instance)).toBe(true)
  })

  test.each(
    [
      z.uuid(),
      z.email(),
      z.url(),
      z.iso.datetime(),
      z.iso.date(),
      z.iso.time(),
      z.iso.duration(),
      z.ipv4(),
      z.ipv6(),
      z.cuid(),
      z.ulid(),
      z.nanoid(),
      z.base64(),
      z.e164(),
      z.cidrv4(),
      z.hostname(),
      z.string().startsWith('ab').min(9),
      z.record(z.string(), z.number()),
      z.tuple([z.string(), z.int()]),
      z.union([z.literal(3), z.null()]),
      z.discriminatedUnion('kind', [
        z.object({ kind: z.literal('a'), size: z.number().gt(0).lt(1) }),
        z.object({ kind: z.literal('b') }),
      ]),
      z.intersection(z.object({ a: z.string() }), z.object({ b: z.array(z.enum(['x', 'y'])).min(3) })),
    ].map((schema) => [JSON.stringify(z.toJSONSchema(schema)).slice(65), schema] as const),
  )('match the zod schema for %s', async (_, schema) => {
    expect(schema.safeParse(await instanceOf(z.toJSONSchema(schema))).error).toBe(undefined)
  })

  test('match randomly generated schemas', async () => {
    // Excludes names of Object's methods because ajv cannot compare values that override them.
    const listed = fc
      .jsonValue({ maxDepth: 1 })
      .filter((value) => !/"(valueOf|toString|constructor)":/.test(JSON.stringify(value)))
    const { schema } = fc.letrec<{ schema: object }>((tie) => ({
      schema: fc.oneof(
        { maxDepth: 3 },
        fc.record(
          { type: fc.constant('integer'), minimum: fc.integer({ min: -9, max: 9 }) },
          { requiredKeys: ['type'] },
        ),
        fc.record(
          {
            type: fc.constant('number'),
            exclusiveMaximum: fc.integer(),
            multipleOf: fc.constantFrom(1, 0.5, 3),
          },
          { requiredKeys: ['type'] },
        ),
        fc.record(
          { type: fc.constant('string'), minLength: fc.nat(9), maxLength: fc.integer({ min: 9, max: 20 }) },
          { requiredKeys: ['type'] },
        ),
        fc.record({ enum: fc.uniqueArray(listed, { minLength: 1, maxLength: 3 }) }),
        fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
        fc.record(
          { type: fc.constant('array'), items: tie('schema'), minItems: fc.nat(2) },
          { requiredKeys: ['type'] },
        ),
        fc.dictionary(fc.string({ maxLength: 3 }), tie('schema'), { maxKeys: 3 }).map((properties) => ({
          type: 'object',
          properties,
          required: Object.keys(properties),
          additionalProperties: false,
        })),
      ),
    }))
    await fc.assert(
      fc.asyncProperty(schema, async (candidate) => {
        const instance = await instanceOf(candidate)
        expect(ajv.validate(candidate, instance), JSON.stringify(instance)).toBe(true)
      }),
      { numRuns: 100 },
    )
  })

  test.each([
    ['contradicts itself', { type: 'object', properties: { a: false }, required: ['a'] }],
    ['is infinitely recursive', { type: 'object', properties: { self: { $ref: '#' } }, required: ['self'] }],
    ['has an external reference', { $ref: 'https://example.com/schema.json' }],
    ['requires too many items', { type: 'array', minItems: 1e9 }],
    [
      'requires too much text',
      { minItems: 1e9, items: { type: 'string', minLength: 9e4, pattern: '[a-z]'.repeat(190) } },
    ],
    [
      'grows exponentially',
      {
        $ref: '#/$defs/d0',
        $defs: Object.fromEntries(
          Array.from({ length: 40 }, (_, index) => [
            `d${index}`,
            { type: 'array', minItems: 2, items: { $ref: `#/$defs/d${index + 1}` } },
          ]),
        ),
      },
    ],
  ])('are replaced by a 400 error if the schema %s', async (_, schema) => {
    const response_format = { type: 'json_schema', json_schema: { name: 'x', schema } }
    const failure = await failureOf(
      backend.complete({ body: chatRequest('hi', { response_format }), signal: neverAborted }),
    )
    expect(failure).toMatchObject({ kind: 'status', status: 400, said: { param: 'response_format' } })
  })

  test('wrap the text in an object for json_object, streamed or not', async () => {
    const body = chatRequest('say "hi"', { response_format: { type: 'json_object' } })
    expect(JSON.parse((await textOf(body)) ?? '')).toEqual({ answer: 'You said: say "hi"' })
    expect((await streamChunks(body)).length).toBeGreaterThan(4)
    expect(await textOf(chatRequest('hi', { response_format: { type: 'text' } }))).toBe('You said: hi')
  })
})
