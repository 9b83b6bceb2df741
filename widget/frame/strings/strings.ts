/** Finds the words for a person's language. */
import { ar } from './ar.ts'
import { de } from './de.ts'
import { en, type Plurals, type Strings } from './en.ts'
import { es } from './es.ts'
import { fr } from './fr.ts'
import { he } from './he.ts'
import { ja } from './ja.ts'
import { pt } from './pt.ts'
import { zh } from './zh.ts'

const languages: Readonly<Record<string, Strings>> = { ar, de, en, es, fr, he, ja, pt, zh }

/** A language the frame speaks, with what a page says of it. */
export interface Language {
  /** BCP 47, as it was asked for: numbers are written in its manner. */
  readonly tag: string
  readonly direction: 'ltr' | 'rtl'
  readonly strings: Strings
}

const rightToLeft: ReadonlySet<string> = new Set(['ar', 'he'])

/** The first of the wanted languages that the frame speaks, English without one. */
export function chooseLanguage(wanted: readonly (string | undefined)[]): Language {
  for (const tag of wanted) {
    const base = tag?.toLowerCase().split(/[-_]/)[0] ?? ''
    // The code Hebrew had until 1989 is still sent by some systems.
    const name = base === 'iw' ? 'he' : base
    if (!Object.hasOwn(languages, name)) continue
    const strings = languages[name] as Strings
    return { tag: isTag(tag) ? tag : name, direction: rightToLeft.has(name) ? 'rtl' : 'ltr', strings }
  }
  return { tag: 'en', direction: 'ltr', strings: en }
}

/** A text with its `{names}` filled in. */
export function fill(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replaceAll(/\{(\w+)\}/g, (all, name) => String(values[name] ?? all))
}

/** A count in words. */
export function countIn({ tag, strings }: Language, count: number): string {
  const plurals: Plurals = strings.newMessages
  const text = plurals[new Intl.PluralRules(tag).select(count)] ?? plurals.other
  return fill(text, { count: new Intl.NumberFormat(tag).format(count) })
}

/** A time to wait in words, such as "12 seconds". */
export function secondsIn({ tag }: Language, seconds: number): string {
  const [count, unit] = seconds < 120 ? [seconds, 'second'] : [Math.ceil(seconds / 60), 'minute']
  return new Intl.NumberFormat(tag, { style: 'unit', unit, unitDisplay: 'long' }).format(count)
}

function isTag(tag: string | undefined): tag is string {
  try {
    return tag !== undefined && Intl.getCanonicalLocales(tag).length === 1
  } catch {
    return false
  }
}
