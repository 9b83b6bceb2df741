/** Renders texts whose parameters are elements, such as code and links. */
import { Fragment, type ReactNode } from 'react'
import type { Key, ParametersOf } from './catalogue.ts'
import { readText } from './language.ts'

type Elements<K extends Key> = { readonly [N in ParametersOf<K>]: ReactNode }

/** Returns a text in the current language with an element for each parameter. */
export function rich<K extends Key>(key: K, elements: Elements<K>): ReactNode {
  const given = elements as Readonly<Record<string, ReactNode>>
  // The pattern's group makes every second part the name of a parameter.
  const parts = readText(key, given.count).split(/\{(\w+)\}/)
  return parts.map((part, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a part has no other identity, and the order never changes
    <Fragment key={index}>{index % 2 === 0 ? part : given[part]}</Fragment>
  ))
}
