/** Tests the error messages for input that a schema rejects. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { toInvalidValue } from '../../src/operations/errors.ts'

function messageOf(schema: z.ZodType, input: unknown): string {
  const { error } = schema.safeParse(input)
  if (error === undefined) throw new Error('the schema accepts this input')
  return toInvalidValue(error).message
}

describe('an input error', () => {
  test.each([
    [z.object({ limit: z.int().max(100) }), { limit: 101 }, 'limit: must be at most 100'],
    [z.object({ limit: z.int().min(1) }), { limit: 0 }, 'limit: must be at least 1'],
    [z.object({ share: z.number().lt(1) }), { share: 1 }, 'share: must be less than 1'],
    [z.object({ name: z.string().max(3) }), { name: 'four' }, 'name: must have at most 3 characters'],
    [z.object({ tools: z.array(z.string()).min(1) }), { tools: [] }, 'tools: must have at least 1 items'],
    [z.object({ name: z.string() }), { name: 7 }, 'name: must be a string (got number)'],
    [z.object({ count: z.int() }), { count: 1.5 }, 'count: must be an integer (got number)'],
    [z.object({ tools: z.array(z.string()) }), { tools: null }, 'tools: must be an array (got null)'],
    [z.object({ order: z.enum(['asc', 'desc']) }), { order: 'up' }, 'order: must be one of "asc", "desc"'],
    [z.object({ object: z.literal('list') }), { object: 'x' }, 'object: must be "list"'],
    [z.object({ id: z.string().regex(/^a+$/) }), { id: 'b' }, 'id: must match /^a+$/'],
    [z.strictObject({ a: z.string() }), { a: '', b: 1 }, "unknown field 'b'"],
    [z.object({ name: z.string() }), {}, 'name: is required'],
    [z.object({ name: z.string('must be a name') }), { name: 7 }, 'name: must be a name'],
    [z.string(), 7, 'must be a string (got number)'],
  ])('names the field, if there is one, and the reason (case %#)', (schema, input, message) => {
    expect(messageOf(schema, input)).toBe(message)
  })
})
