/** Reads and changes nested values by path. */

/** Mapping keys and list indexes, outermost first. */
export type Path = readonly (string | number)[]

/**
 * Returns a copy with `value` at `path`, creating missing mappings and lists; `undefined` removes the value.
 */
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
  // Spreads `whole` first to preserve the key's position.
  return isRecord(whole) ? { ...whole, [key]: inner } : { [key]: inner }
}

export function valueAt(whole: unknown, path: Path): unknown {
  return path.reduce<unknown>((held, key) => {
    if (Array.isArray(held)) return held[key as number]
    return isRecord(held) ? held[key] : undefined
  }, whole)
}

/** Returns the path to remove so that no empty parent remains: the value's path or an ancestor's. */
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

/** Compares two values as JSON, ignoring the order of keys. */
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
