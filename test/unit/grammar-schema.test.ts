/** Which grammar a JSON Schema becomes: what the library would misread is left out, and never too little allowed. */
import { describe, expect, test } from 'vitest'
import { toGrammarSchema } from '../../packages/in-process/src/grammar-schema.ts'

const any = toGrammarSchema({})
const text = { type: 'string' }

describe('a schema', () => {
  test.each<[what: string, schema: unknown, grammar: object]>([
    ['of one type', { type: 'integer', minimum: 3 }, { type: 'integer' }],
    ['of several scalar types', { type: ['string', 'null'], maxLength: 3 }, { type: ['string', 'null'] }],
    [
      'of a scalar and a list',
      { type: ['null', 'array'], items: text },
      { oneOf: [{ type: 'null' }, { type: 'array', items: text }] },
    ],
    ['with a description', { ...text, description: 'a name' }, { ...text, description: 'a name' }],
    [
      'of a text with lengths',
      { ...text, minLength: 1, maxLength: 9, pattern: 'a' },
      { ...text, minLength: 1, maxLength: 9 },
    ],
    ['of a text too long to count', { ...text, maxLength: 100_000 }, text],
    [
      'of a text with a most below its least',
      { ...text, minLength: 3, maxLength: 2 },
      { ...text, minLength: 3 },
    ],
    [
      'of a list with fewer places than it has',
      { prefixItems: [text, text], maxItems: 1 },
      { type: 'array', prefixItems: [text, text] },
    ],
    [
      'of a list too long to count',
      { items: text, minItems: 1, maxItems: 101 },
      { type: 'array', items: text, minItems: 1 },
    ],
    ['of a date', { ...text, format: 'date' }, { ...text, format: 'date' }],
    ['of another format', { ...text, format: 'email' }, text],
    ['with values', { type: 'string', enum: ['a', 'b'] }, { enum: ['a', 'b'] }],
    ['with a value', { const: null }, { const: null }],
    [
      'with values that are no scalars',
      { type: 'object', enum: [{}] },
      { type: 'object', properties: {}, additionalProperties: true },
    ],
    ['of any one of some', { anyOf: [text, { type: 'null' }] }, { oneOf: [text, { type: 'null' }] }],
    ['of all of one', { allOf: [text] }, text],
    [
      'of a list with counts',
      { items: text, minItems: 1, maxItems: 2 },
      { type: 'array', items: text, minItems: 1, maxItems: 2 },
    ],
    ['of a list with places', { type: 'array', prefixItems: [text] }, { type: 'array', prefixItems: [text] }],
    [
      'of an object',
      { properties: { a: text, b: {} }, required: ['a'] },
      { type: 'object', properties: { a: text, b: any }, additionalProperties: false },
    ],
    ['of any object', { type: 'object' }, { type: 'object', properties: {}, additionalProperties: true }],
    [
      'of an object with others',
      { type: 'object', additionalProperties: text, maxProperties: 3 },
      { type: 'object', properties: {}, additionalProperties: text, maxProperties: 3 },
    ],
    [
      'with definitions, old and new',
      { $ref: '#/definitions/a', definitions: { a: { $ref: '#/$defs/b' } }, $defs: { b: text } },
      { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: text } },
    ],
  ])('%s', (_what, schema, grammar) => {
    expect(toGrammarSchema(schema)).toEqual(grammar)
  })

  test.each<[what: string, schema: unknown]>([
    ['that is none', 'x'],
    ['that is true', true],
    ['without a type', { description: undefined, title: 'x' }],
    ['of an unknown type', { type: 'date' }],
    ['of all of several', { allOf: [text, text] }],
    ['that refers to nothing', { $ref: '#/$defs/a' }],
    ['that refers elsewhere', { $ref: 'https://schemas.org/a' }],
  ])('%s allows any value', (_what, schema) => {
    expect(toGrammarSchema(schema)).toEqual(any)
  })

  test('nested too deeply allows any value at its bottom', () => {
    let schema: object = text
    for (let depth = 0; depth < 40; depth++) schema = { type: 'array', items: schema }
    let found: unknown = toGrammarSchema(schema)
    let depth = 0
    for (; (found as { type?: string }).type === 'array'; depth++) found = (found as { items: unknown }).items
    expect({ depth, found }).toEqual({ depth: 33, found: any })
  })
})
