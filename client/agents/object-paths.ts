/** Values within values, by their paths. */

/** Keys of mappings and places in lists, from the outside in. */
export type Path = readonly (string | number)[]

/** A copy with that value at that place; `undefined` takes it out. Mappings and lists on the way are made. */
export function withValue(whole: unknown, path: Path, value: unknown): unknown {
  const [key, ...rest] = path
  if (key === undefined) return value
  if (typeof key === 'number') {
    const list = Array.isArray(whole) ? [...whole] : []
    const inner = withValue(list[key], rest, value)
    return inner === undefined ? list.toSpliced(key, 1) : list.toSpliced(key, 1, inner)
  }
  const { [key]: held, ...others } = isRecord(whole) ? whole : {}
  const inner = withValue(held, rest, value)
  if (inner === undefined) return others
  // In its old place: the order of keys is the text's.
  return isRecord(whole) ? { ...whole, [key]: inner } : { [key]: inner }
}

/** What stands there; undefined for nothing. */
export function valueAt(whole: unknown, path: Path): unknown {
  return path.reduce<unknown>((held, key) => {
    if (Array.isArray(held)) return held[key as number]
    return isRecord(held) ? held[key] : undefined
  }, whole)
}

/** The path without the ends that would be left empty when what is there is taken out. */
export function emptiedPath(whole: unknown, path: Path): Path {
  const parent = path.slice(0, -1)
  if (parent.length === 0) return path
  const held = valueAt(whole, parent)
  const size = Array.isArray(held) ? held.length : Object.keys(isRecord(held) ? held : {}).length
  return size <= 1 ? emptiedPath(whole, parent) : path
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether two values would be the same JSON, in whatever order their keys stand. */
export function isSame(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, index) => isSame(item, other[index]))
  }
  if (isRecord(one) && isRecord(other)) {
    const keys = Object.keys(one)
    return keys.length === Object.keys(other).length && keys.every((key) => isSame(one[key], other[key]))
  }
  return Object.is(one, other)
}
