/** Generates an instance of a JSON Schema for the mock provider's structured answers and tool arguments. */
import { isJsonObject, type JsonObject, listStrings, toCount } from '../../lib/formats/json.ts'
import { flattenSchema, type SchemaWalk } from './flatten-schema.ts'
import { type ScalarWish, sampleNumber, sampleString } from './sample-scalars.ts'

interface Walk extends SchemaWalk {
  readonly hints: ReadonlyMap<string, string>
}

interface Place extends ScalarWish {
  readonly refs: readonly string[]
  readonly depth: number
}

type Sampler = (keywords: JsonObject, walk: Walk, place: Place) => unknown

const maxSteps = 5_000
const maxDepth = 100
const charactersPerStep = 100

/**
 * Generates required and hinted properties and one item per array; returns undefined if the schema is
 * contradictory or too large.
 */
export function sampleSchema(schema: unknown, hints: ReadonlyMap<string, string> = new Map()): unknown {
  return sample(schema, { root: schema, hints, stepsLeft: maxSteps }, { refs: [], depth: 0, variant: 0 })
}

function sample(schema: unknown, walk: Walk, place: Place): unknown {
  const flat = place.depth > maxDepth ? undefined : flattenSchema(schema, walk, place.refs)
  if (flat === undefined) return undefined
  const inner = { ...place, refs: flat.refs, depth: place.depth + 1 }
  const [options, ...others] = flat.choices
  if (options === undefined) return sampleKeywords(flat.keywords, walk, inner)
  const rest = [flat.keywords, ...others.map((anyOf) => ({ anyOf }))]
  return findFirst(options, (option) => sample({ allOf: [...rest, option] }, walk, inner))
}

function sampleKeywords(keywords: JsonObject, walk: Walk, place: Place): unknown {
  const types = listTypes(keywords)
  const listed = listValues(keywords)
  if (listed === undefined) return findFirst(types, (type) => samplers[type]?.(keywords, walk, place))
  const allowed = listed.filter((value) => types.some((type) => isOfType(value, type)))
  return pickValue(allowed, place)
}

function listValues(keywords: JsonObject): readonly unknown[] | undefined {
  const list = Array.isArray(keywords.enum) ? keywords.enum : undefined
  if (!Object.hasOwn(keywords, 'const')) return list
  const constant = JSON.stringify(keywords.const)
  const isListed = list === undefined || list.some((value) => JSON.stringify(value) === constant)
  return isListed ? [keywords.const] : []
}

const samplers: Readonly<Record<string, Sampler>> = {
  object: sampleObject,
  array: sampleArray,
  string: sampleText,
  integer: (keywords, _walk, place) => sampleNumber(keywords, true, place),
  number: (keywords, _walk, place) => sampleNumber(keywords, false, place),
  boolean: (_keywords, _walk, place) => pickValue([true, false], place),
  null: (_keywords, _walk, place) => pickValue([null], place),
}

const typeClues: readonly (readonly [type: string, keywords: readonly string[]])[] = [
  ['object', ['properties', 'required', 'additionalProperties', 'minProperties', 'patternProperties']],
  ['array', ['items', 'prefixItems', 'minItems', 'maxItems', 'uniqueItems']],
  ['number', ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']],
]

/** Lists the types that an instance may have, with null last. */
function listTypes(keywords: JsonObject): readonly string[] {
  if (Object.hasOwn(keywords, 'type')) {
    const named = listStrings(keywords.type)
    return [...named.filter((type) => type !== 'null'), ...named.filter((type) => type === 'null')]
  }
  if (listValues(keywords) !== undefined) return Object.keys(samplers)
  const clue = typeClues.find(([, names]) => names.some((name) => Object.hasOwn(keywords, name)))
  return [clue?.[0] ?? 'string']
}

function isOfType(value: unknown, type: string): boolean {
  if (type === 'object') return isJsonObject(value)
  if (type === 'array') return Array.isArray(value)
  if (type === 'null') return value === null
  if (type === 'integer') return Number.isInteger(value)
  return typeof value === type
}

/** Charges more steps for long strings and patterns, in proportion to their length. */
function sampleText(keywords: JsonObject, walk: Walk, place: Place): unknown {
  const patternLength = typeof keywords.pattern === 'string' ? keywords.pattern.length : 0
  walk.stepsLeft -= Math.ceil(((toCount(keywords.minLength, 0) ?? 0) + patternLength) / charactersPerStep)
  return walk.stepsLeft < 0 ? undefined : sampleString(keywords, place)
}

function sampleObject(keywords: JsonObject, walk: Walk, place: Place): unknown {
  if (place.hint !== undefined) return undefined
  const properties = isJsonObject(keywords.properties) ? keywords.properties : {}
  const required = new Set(listStrings(keywords.required))
  const fewest = toCount(keywords.minProperties, 0) ?? 0
  const entries = new Map<string, unknown>()
  const addMember = (name: string, schema: unknown) => {
    const hint = walk.hints.get(name)
    const hinted = hint === undefined ? undefined : sample(schema, walk, { ...place, hint })
    const value = hinted ?? sample(schema, walk, place)
    if (value !== undefined) entries.set(name, value)
  }
  for (const name of [...Object.keys(properties), ...required]) {
    if (entries.has(name) || !(required.has(name) || walk.hints.has(name))) continue
    addMember(
      name,
      Object.hasOwn(properties, name) ? properties[name] : (keywords.additionalProperties ?? true),
    )
    if (required.has(name) && !entries.has(name)) return undefined
  }
  for (const [name, schema] of Object.entries(properties)) {
    if (entries.size < fewest && !entries.has(name)) addMember(name, schema)
  }
  for (let number = 1; entries.size < fewest && walk.stepsLeft > 0; number += 1) {
    addMember(`key${number}`, keywords.additionalProperties ?? true)
  }
  return entries.size < fewest ? undefined : Object.fromEntries(entries)
}

function sampleArray(keywords: JsonObject, walk: Walk, place: Place): unknown {
  const { hint, ...plain } = place
  const parts = hint?.split(',').map((part) => part.trim())
  const leading = [keywords.prefixItems, keywords.items].find((list) => Array.isArray(list)) ?? []
  const following = Array.isArray(keywords.items) ? keywords.additionalItems : keywords.items
  const fewest = toCount(keywords.minItems, 0) ?? 0
  const most = toCount(keywords.maxItems, 0) ?? Number.POSITIVE_INFINITY
  const wanted = parts?.length ?? Math.min(Math.max(fewest, 1), most)
  const items: unknown[] = []
  for (let index = 0; index < wanted; index += 1) {
    const schema = index < leading.length ? leading[index] : (following ?? true)
    const variant = plain.variant + (keywords.uniqueItems === true ? index : 0)
    const part = parts?.[index]
    const item = sample(schema, walk, { ...plain, variant, ...(part !== undefined && { hint: part }) })
    if (item === undefined) break
    items.push(item)
  }
  const isWhole = items.length >= (parts?.length ?? fewest) && items.length <= most && items.length >= fewest
  const isUnique = new Set(items.map((item) => JSON.stringify(item))).size === items.length
  return isWhole && (isUnique || keywords.uniqueItems !== true) ? items : undefined
}

function pickValue(values: readonly unknown[], { variant, hint }: Place): unknown {
  return hint === undefined ? values[variant % values.length] : values.find((value) => String(value) === hint)
}

function findFirst<Option>(options: readonly Option[], read: (option: Option) => unknown): unknown {
  for (const option of options) {
    const found = read(option)
    if (found !== undefined) return found
  }
  return undefined
}
