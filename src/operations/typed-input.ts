/** Reads tRPC input from its superjson envelope, without superjson, which trusts its input (ADR 0001). */
import { ServiceError } from '../lib/errors.ts'

/** The maximum number of annotated paths; far more than a chat with two undefined fields per message needs. */
const MAX_PATHS = 10_000

interface Place {
  readonly holder: object
  readonly key: string
  readonly value: unknown
}

/** Returns `json` without the fields that `meta` marks as undefined; null, which no operation accepts, without an envelope. */
export function readTypedInput(sent: { json?: unknown; meta?: unknown } | null | undefined): unknown {
  if (typeof sent !== 'object' || sent === null || !Object.hasOwn(sent, 'json')) return null
  const { json, meta } = sent
  if (meta === undefined || meta === null) return json
  if (!isObject(meta)) throw refuse('must be an object')
  const { values, referentialEqualities } = meta
  // The input as a whole is marked by a list instead of a list for each path.
  if (Array.isArray(values)) {
    if (values.length !== 1 || values[0] !== 'undefined')
      throw refuse('describes a value that JSON cannot hold')
    return undefined
  }
  const budget = { pathsLeft: MAX_PATHS }
  assertWritten(json, referentialEqualities, budget)
  applyValues(json, values, budget)
  return json
}

/** Applies the annotations `{ path: [type] }` to the values at these paths. */
function applyValues(json: unknown, values: unknown, budget: Budget): void {
  if (values === undefined) return
  if (!isObject(values)) throw refuse('has invalid values')
  for (const path in values) {
    const annotation = values[path]
    const place = findPlace(json, path, budget)
    if (!Array.isArray(annotation) || annotation.length !== 1)
      throw refuse('describes a value that JSON cannot hold')
    applyType(place, annotation[0])
  }
}

/** Converts one value as JSON encoding would. */
function applyType({ holder, key, value }: Place, type: unknown): void {
  switch (type) {
    case 'undefined':
      // JSON writes null for an undefined item of a list, and so does superjson.
      if (!Array.isArray(holder)) Reflect.deleteProperty(holder, key)
      return
    case 'number':
      // These are -0, which JSON writes as 0, and NaN and the infinities, which it writes as null.
      Reflect.set(holder, key, value === '-0' ? 0 : null)
      return
    case 'Date':
    case 'URL':
      // JSON and superjson write the same text for these.
      return
    default:
      throw refuse('describes a value that JSON cannot hold')
  }
}

/** Ignores which objects of the client were the same, because `json` repeats them; rejects an object that contains itself. */
function assertWritten(json: unknown, equalities: unknown, budget: Budget): void {
  if (equalities === undefined) return
  // Paths that are equal to the input itself come in a list: the input contains itself.
  if (!isObject(equalities) || Array.isArray(equalities)) throw refuse('must not contain circular references')
  for (const original in equalities) {
    findPlace(json, original, budget)
    const copies = equalities[original]
    if (!Array.isArray(copies)) throw refuse('has invalid referentialEqualities')
    for (const copy of copies) {
      if (findPlace(json, copy, budget).value === null) throw refuse('must not contain circular references')
    }
  }
}

interface Budget {
  pathsLeft: number
}

/** The value at a path such as `messages.0.name`, found through own fields only. */
function findPlace(json: unknown, path: unknown, budget: Budget): Place {
  budget.pathsLeft -= 1
  if (budget.pathsLeft < 0) throw refuse(`has more than ${MAX_PATHS} paths`)
  if (typeof path !== 'string') throw refuse('has a path that is not a string')
  let place: Place | undefined
  let value = json
  for (const key of splitPath(path)) {
    if (!isObject(value) || !Object.hasOwn(value, key)) throw refuse('has a path that is not in the input')
    place = { holder: value, key, value: value[key] }
    value = place.value
  }
  return place as Place
}

/** The keys of a path, at least one; a backslash escapes a dot and itself. */
function* splitPath(path: string): Generator<string> {
  let key = ''
  let from = 0
  for (let at = 0; at < path.length; at++) {
    const isEscape = path[at] === '\\' && (path[at + 1] === '.' || path[at + 1] === '\\')
    if (!isEscape && path[at] !== '.') continue
    key += path.slice(from, at)
    from = at + 1
    if (isEscape) {
      at += 1
      continue
    }
    yield key
    key = ''
  }
  yield key + path.slice(from)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function refuse(what: string): ServiceError {
  return new ServiceError('invalid_value', `meta ${what}; send plain JSON in json.`)
}
