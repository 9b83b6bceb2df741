/** Defines the types of catalogues, keys and parameters; a key that a language lacks is a type error. */
import type { Catalogue } from './en/index.ts'

/** A text with plural forms; `count` selects the form. */
export type Plurals = Readonly<Partial<Record<Intl.LDMLPluralRule, string>>> & { readonly other: string }

/** A catalogue in another language: the same keys as in English. */
export type Translation = {
  readonly [A in keyof Catalogue]: AreaTranslation<Catalogue[A]>
}

export type AreaTranslation<T> = { readonly [K in keyof T]: T[K] extends string ? string : Plurals }

export type Area = keyof Catalogue

/** The area and the name of a text, such as `shell.signOut`. */
export type Key = { [A in Area]: `${A}.${Extract<keyof Catalogue[A], string>}` }[Area]

/** The key of a name in `things.ts`, such as `agents`. */
export type Thing = keyof Catalogue['things']

type EnglishOf<K extends Key> = K extends `${infer A extends Area}.${infer N}`
  ? N extends keyof Catalogue[A]
    ? Catalogue[A][N]
    : never
  : never

type NamesIn<S> = S extends `${string}{${infer N}}${infer Rest}` ? N | NamesIn<Rest> : never

export type ParametersOf<K extends Key> =
  EnglishOf<K> extends infer E ? (E extends { other: infer O } ? NamesIn<O> | 'count' : NamesIn<E>) : never

/** The key of a text without parameters. */
export type PlainKey = { [K in Key]: [ParametersOf<K>] extends [never] ? K : never }[Key]

export type Values<K extends Key> = [ParametersOf<K>] extends [never]
  ? []
  : [
      values: {
        readonly [N in ParametersOf<K>]: N extends 'count' ? number : string | number
      },
    ]
