/**
 * Converts a JSON Schema to the dialect of the library's grammars, and omits keywords that the library
 * misreads.
 */
import type { GbnfJsonSchema } from 'node-llama-cpp'
import { isJsonObject, type JsonObject, toCount } from '../../../src/lib/formats/json.ts'

const DEEPEST = 32
/** llama.cpp rejects grammars with more repetitions. */
const MOST_REPEATS = { Length: 1000, Items: 100, Properties: 100 }

const scalars = ['string', 'number', 'integer', 'boolean', 'null']
const knownTypes = [...scalars, 'object', 'array']
const formats = ['date-time', 'time', 'date']

const anyValue: JsonObject = {
  oneOf: [
    { type: ['string', 'number', 'boolean', 'null'] },
    { type: 'object', additionalProperties: true },
    { type: 'array' },
  ],
}

interface Walk {
  readonly depth: number
  readonly names: ReadonlySet<string>
}

/**
 * Converts a schema; makes every property required. Ignores unknown keywords, so that the grammar never
 * rejects valid values.
 */
export function toGrammarSchema(schema: unknown): GbnfJsonSchema {
  const root = isJsonObject(schema) ? schema : {}
  const known = { ...asObject(root.definitions), ...asObject(root.$defs) }
  const walk: Walk = { depth: 0, names: new Set(Object.keys(known)) }
  const rewritten = rewrite(schema, walk)
  const definitions = walk.names.size === 0 ? {} : { $defs: rewriteAll(known, walk) }
  return { ...rewritten, ...definitions } as GbnfJsonSchema
}

function rewrite(schema: unknown, { depth, names }: Walk): JsonObject {
  if (!isJsonObject(schema) || depth > DEEPEST) return anyValue
  const walk = { depth: depth + 1, names }
  const description = typeof schema.description === 'string' ? { description: schema.description } : {}
  if (schema.$ref !== undefined) return { ...description, ...toReference(schema.$ref, names) }
  if (isScalar(schema.const)) return { ...description, const: schema.const }
  const { enum: values, allOf } = schema
  if (Array.isArray(values) && values.length > 0 && values.every(isScalar))
    return { ...description, enum: values }
  const union = [schema.oneOf, schema.anyOf].find((list) => Array.isArray(list) && list.length > 0)
  if (union !== undefined)
    return { ...description, oneOf: (union as unknown[]).map((each) => rewrite(each, walk)) }
  if (Array.isArray(allOf) && allOf.length === 1) return rewrite(allOf[0], walk)
  const types = listTypes(schema)
  if (types.length === 0) return anyValue
  if (types.every((type) => scalars.includes(type)) && types.length > 1)
    return { type: types, ...description }
  if (types.length > 1)
    return { ...description, oneOf: types.map((type) => rewrite({ ...schema, type }, walk)) }
  return { type: types[0], ...description, ...rewriteKeywords(schema, types[0] as string, walk) }
}

function rewriteKeywords(schema: JsonObject, type: string, walk: Walk): JsonObject {
  if (type === 'object') {
    const { properties, additionalProperties: others = properties === undefined } = schema
    const known = rewriteAll(asObject(properties), walk)
    return {
      properties: known,
      additionalProperties: typeof others === 'boolean' ? others : rewrite(others, walk),
      ...pickRange(schema, 'Properties', Object.keys(known).length),
    }
  }
  if (type === 'array') {
    const { items, prefixItems } = schema
    const places = Array.isArray(prefixItems) ? prefixItems.map((each) => rewrite(each, walk)) : []
    return {
      ...(items !== undefined && { items: rewrite(items, walk) }),
      ...(places.length > 0 && { prefixItems: places }),
      ...pickRange(schema, 'Items', places.length),
    }
  }
  if (type !== 'string') return {}
  const { format } = schema
  return formats.includes(String(format)) ? { format } : pickRange(schema, 'Length', 0)
}

/** Returns the named or implied types; an empty list allows any type. */
function listTypes({ type, properties, items, prefixItems }: JsonObject): readonly string[] {
  const named = [type].flat().filter((each) => typeof each === 'string')
  if (named.length > 0) return [...new Set(named)].filter((each) => knownTypes.includes(each))
  if (properties !== undefined) return ['object']
  return items === undefined && prefixItems === undefined ? [] : ['array']
}

function toReference(target: unknown, names: ReadonlySet<string>): JsonObject {
  const name = /^#\/(?:\$defs|definitions)\/([^/]+)$/.exec(String(target))?.[1]
  return name !== undefined && names.has(name) ? { $ref: `#/$defs/${name}` } : anyValue
}

function rewriteAll(schemas: JsonObject, walk: Walk): JsonObject {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, rewrite(schema, walk)]))
}

/**
 * Returns the bounds that the library accepts. Omits an upper bound below `written`, for which the library
 * logs an error.
 */
function pickRange(schema: JsonObject, of: keyof typeof MOST_REPEATS, written: number): JsonObject {
  const [least, most] = [schema[`min${of}`], schema[`max${of}`]].map((count) =>
    Number(count) <= MOST_REPEATS[of] ? toCount(count, 0) : undefined,
  )
  return {
    ...(least !== undefined && { [`min${of}`]: least }),
    ...(most !== undefined && most >= Math.max(written, least ?? 0) && { [`max${of}`]: most }),
  }
}

function isScalar(value: unknown): boolean {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value)
}

function asObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {}
}
