/** Loads and selects the strings for the visitor's language. */
import { en, type Plurals, type Strings } from './en.ts'

/** Functions that load each language's strings from a separate script. */
const loaders: Readonly<Record<string, () => Promise<Strings>>> = {
  ar: async () => (await import('./ar.ts')).ar,
  de: async () => (await import('./de.ts')).de,
  en: async () => en,
  es: async () => (await import('./es.ts')).es,
  fr: async () => (await import('./fr.ts')).fr,
  he: async () => (await import('./he.ts')).he,
  it: async () => (await import('./it.ts')).it,
  ja: async () => (await import('./ja.ts')).ja,
  pt: async () => (await import('./pt.ts')).pt,
  zh: async () => (await import('./zh.ts')).zh,
}

/** The texts that have been loaded; English is part of the frame's script. */
const loaded: Record<string, Strings> = { en }

/** A supported language and its texts. */
export interface Language {
  /** The requested BCP 47 tag, which also determines the number format. */
  readonly tag: string
  readonly direction: 'ltr' | 'rtl'
  readonly strings: Strings
}

const rightToLeft: ReadonlySet<string> = new Set(['ar', 'he'])

/**
 * Loads the texts of the first supported language in `wanted`. Returns undefined if they are already loaded.
 * If loading fails, `chooseLanguage` returns another wanted language or English.
 */
export function loadLanguage(wanted: readonly (string | undefined)[]): Promise<void> | undefined {
  const name = wanted.map(nameOf).find((one) => Object.hasOwn(loaders, one))
  const load = name === undefined || Object.hasOwn(loaded, name) ? undefined : loaders[name]
  return load?.().then(
    (strings) => {
      loaded[name as string] = strings
    },
    () => {},
  )
}

/** Returns the first language in `wanted` whose texts have been loaded, or English. */
export function chooseLanguage(wanted: readonly (string | undefined)[]): Language {
  for (const tag of wanted) {
    const name = nameOf(tag)
    if (!Object.hasOwn(loaded, name)) continue
    const strings = loaded[name] as Strings
    return { tag: isTag(tag) ? tag : name, direction: rightToLeft.has(name) ? 'rtl' : 'ltr', strings }
  }
  return { tag: 'en', direction: 'ltr', strings: en }
}

/** Returns the name of a tag's file. Some systems still use `iw`, Hebrew's code until 1989. */
function nameOf(tag: string | undefined): string {
  const base = tag?.toLowerCase().split(/[-_]/)[0] ?? ''
  return base === 'iw' ? 'he' : base
}

/** Replaces each `{name}` in the text with its value. */
export function fill(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replaceAll(/\{(\w+)\}/g, (all, name) => String(values[name] ?? all))
}

/** Renders the number of new messages as text. */
export function countIn({ tag, strings }: Language, count: number): string {
  const plurals: Plurals = strings.newMessages
  const text = plurals[new Intl.PluralRules(tag).select(count)] ?? plurals.other
  return fill(text, { count: new Intl.NumberFormat(tag).format(count) })
}

/** Renders a waiting time as text, such as "12 seconds". */
export function secondsIn({ tag }: Language, seconds: number): string {
  const [count, unit] = seconds < 120 ? [seconds, 'second'] : [Math.ceil(seconds / 60), 'minute']
  return new Intl.NumberFormat(tag, { style: 'unit', unit, unitDisplay: 'long' }).format(count)
}

/** Renders a number of days as text, such as "30 days". */
export function daysIn({ tag }: Language, days: number): string {
  return new Intl.NumberFormat(tag, { style: 'unit', unit: 'day', unitDisplay: 'long' }).format(days)
}

const units = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const

/** Renders a duration as text in the largest unit without a fraction, such as "10 minutes". */
export function durationIn({ tag }: Language, duration: number): string {
  const [unit, seconds] = units.find(([, length]) => duration % length === 0) ?? (['second', 1] as const)
  return new Intl.NumberFormat(tag, { style: 'unit', unit, unitDisplay: 'long' }).format(duration / seconds)
}

const spans = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const

/** Renders a time in the past as text, such as "5 minutes ago". Both times are in Unix seconds. */
export function agoIn({ tag }: Language, time: number, now: number): string {
  const passed = Math.max(0, now - time)
  if (passed >= 7 * 86_400) return new Intl.DateTimeFormat(tag, { dateStyle: 'medium' }).format(time * 1000)
  const format = new Intl.RelativeTimeFormat(tag, { numeric: 'auto' })
  const [unit, seconds] = spans.find(([, span]) => passed >= span) ?? (['second', passed + 1] as const)
  return format.format(-Math.floor(passed / seconds), unit)
}

/** Renders the day of a message as text, such as "Yesterday" or "Monday, March 2". */
export function dayIn({ tag }: Language, timeMs: number, nowMs: number): string {
  const [day, today] = [new Date(timeMs), new Date(nowMs)]
  const days = Math.round((day.setHours(0, 0, 0, 0) - today.setHours(0, 0, 0, 0)) / 86_400_000)
  const text =
    days === 0 || days === -1
      ? new Intl.RelativeTimeFormat(tag, { numeric: 'auto' }).format(days, 'day')
      : new Intl.DateTimeFormat(tag, {
          weekday: 'long',
          day: 'numeric',
          month: 'long',
          ...(day.getFullYear() !== today.getFullYear() && { year: 'numeric' }),
        }).format(timeMs)
  return text.charAt(0).toLocaleUpperCase(tag) + text.slice(1)
}

function isTag(tag: string | undefined): tag is string {
  try {
    return tag !== undefined && Intl.getCanonicalLocales(tag).length === 1
  } catch {
    return false
  }
}
