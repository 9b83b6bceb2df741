/** Merges a JSON Schema's references and `allOf` parts into one set of keywords. */
import { isJsonObject, type JsonObject, listStrings } from '../../lib/formats/json.ts'
import { unescapePointer } from '../../lib/formats/json-schema.ts'

export interface FlatSchema {
  readonly keywords: JsonObject
  /** Each `anyOf` and `oneOf` list; an instance must match one option of each list. */
  readonly choices: readonly (readonly unknown[])[]
  readonly refs: readonly string[]
}

export interface SchemaWalk {
  readonly root: unknown
  stepsLeft: number
}

type Merger = (one: unknown, other: unknown) => unknown

// Allows a reference to occur once inside itself, such as a base type in a property of its subtype.
const maxSameRefs = 2

/** Returns undefined if nothing can match, the schema recurses too deeply, or no steps are left. */
export function flattenSchema(
  schema: unknown,
  walk: SchemaWalk,
  path: readonly string[],
): FlatSchema | undefined {
  walk.stepsLeft -= 1
  if (walk.stepsLeft < 0) return undefined
  if (schema === true) return { keywords: {}, choices: [], refs: path }
  if (!isJsonObject(schema)) return undefined
  const { $ref, allOf, anyOf, oneOf, ...keywords } = schema
  const refs = typeof $ref === 'string' ? [...path, $ref] : path
  if (refs !== path && refs.filter((ref) => ref === $ref).length > maxSameRefs) return undefined
  let flat: FlatSchema = { keywords, choices: [anyOf, oneOf].filter((list) => Array.isArray(list)), refs }
  const parts = Array.isArray(allOf) ? [...allOf] : []
  if (typeof $ref === 'string') parts.push(findReferenced(walk.root, $ref))
  for (const part of parts) {
    const other = flattenSchema(part, walk, refs)
    if (other === undefined) return undefined
    flat = {
      keywords: mergeKeywords(other.keywords, flat.keywords),
      choices: [...flat.choices, ...other.choices],
      refs: [...flat.refs, ...other.refs.slice(refs.length)],
    }
  }
  return flat
}

function findReferenced(root: unknown, ref: string): unknown {
  if (ref !== '#' && !ref.startsWith('#/')) return undefined
  let found = root
  for (const token of ref.split('/').slice(1)) {
    const name = decodePointer(token)
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined
    found = (found as JsonObject)[name]
  }
  return found
}

function decodePointer(token: string): string {
  try {
    return unescapePointer(decodeURIComponent(token))
  } catch {
    return unescapePointer(token)
  }
}

const larger = choosing(Math.max)
const smaller = choosing(Math.min)

/** Merges keywords that both schemas have; for unlisted keywords, the second schema's value is used. */
const mergers: Readonly<Record<string, Merger>> = {
  required: (one, other) => [...new Set([...listStrings(one), ...listStrings(other)])],
  properties: mergeProperties,
  items: bothOf,
  type: intersectTypes,
  enum: intersectValues,
  additionalProperties: (one, other) => (one === false || other === false ? false : bothOf(one, other)),
  minimum: larger,
  exclusiveMinimum: larger,
  minLength: larger,
  minItems: larger,
  minProperties: larger,
  maximum: smaller,
  exclusiveMaximum: smaller,
  maxLength: smaller,
  maxItems: smaller,
}

function mergeKeywords(one: JsonObject, other: JsonObject): JsonObject {
  const entries = Object.entries(other).map(([keyword, value]) => {
    const merge =
      Object.hasOwn(one, keyword) && Object.hasOwn(mergers, keyword) ? mergers[keyword] : undefined
    return [keyword, merge === undefined ? value : merge(one[keyword], value)] as const
  })
  return { ...one, ...Object.fromEntries(entries) }
}

function mergeProperties(one: unknown, other: unknown): unknown {
  if (!isJsonObject(one) || !isJsonObject(other)) return other
  const shared = Object.entries(other).map(([name, schema]) => [
    name,
    Object.hasOwn(one, name) ? bothOf(one[name], schema) : schema,
  ])
  return { ...one, ...Object.fromEntries(shared) }
}

function bothOf(one: unknown, other: unknown): unknown {
  return { allOf: [one, other] }
}

function choosing(choose: (...values: number[]) => number): Merger {
  return (one, other) => (typeof one === 'number' && typeof other === 'number' ? choose(one, other) : other)
}

/** Intersects type lists; an integer is also a number. */
function intersectTypes(one: unknown, other: unknown): unknown {
  const [first, second] = [listStrings(one), listStrings(other)]
  const narrow = (types: readonly string[], others: readonly string[]) =>
    types.filter((type) => others.includes(type) || (type === 'integer' && others.includes('number')))
  return [...new Set([...narrow(first, second), ...narrow(second, first)])]
}

function intersectValues(one: unknown, other: unknown): unknown {
  if (!Array.isArray(one) || !Array.isArray(other)) return other
  const known = new Set(other.map((value) => JSON.stringify(value)))
  return one.filter((value) => known.has(JSON.stringify(value)))
}
