/** Chooses the console's language, loads its catalogue, and renders texts from it. */
import type { Area, Key, Plurals, Translation, Values } from './catalogue.ts'
import { en } from './en/index.ts'

/** The languages in the order of the menu, each with its own name. */
export const languages = [
  { code: 'en', name: 'English' },
  { code: 'de', name: 'Deutsch' },
  { code: 'es', name: 'Español' },
  { code: 'fr', name: 'Français' },
  { code: 'it', name: 'Italiano' },
  { code: 'pt', name: 'Português' },
  { code: 'ar', name: 'العربية' },
  { code: 'ja', name: '日本語' },
  { code: 'zh', name: '中文' },
] as const

export type LanguageCode = (typeof languages)[number]['code']

/** Each catalogue except the English one has a separate script. */
const loaders: Readonly<Record<Exclude<LanguageCode, 'en'>, () => Promise<Translation>>> = {
  ar: async () => (await import('./ar/index.ts')).ar,
  de: async () => (await import('./de/index.ts')).de,
  es: async () => (await import('./es/index.ts')).es,
  fr: async () => (await import('./fr/index.ts')).fr,
  it: async () => (await import('./it/index.ts')).it,
  ja: async () => (await import('./ja/index.ts')).ja,
  pt: async () => (await import('./pt/index.ts')).pt,
  zh: async () => (await import('./zh/index.ts')).zh,
}

const STORAGE_KEY = 'parley-language'

interface Current {
  readonly code: LanguageCode
  /** BCP 47 tag of the locale for numbers and dates; undefined selects the browser's locale. */
  readonly locale: string | undefined
  readonly catalogue: Translation
}

let current: Current = { code: 'en', locale: undefined, catalogue: en }

/** Returns the first wanted language that has a catalogue, with its tag; English otherwise. */
export function chooseLanguage(wanted: readonly string[]): { code: LanguageCode; locale: string } {
  for (const tag of wanted) {
    const base = tag.toLowerCase().split(/[-_]/)[0]
    const found = languages.find(({ code }) => code === base)
    if (found !== undefined) return { code: found.code, locale: tag }
  }
  return { code: 'en', locale: 'en' }
}

/**
 * Selects the language that the user has chosen, or else the browser's, and loads its catalogue. If the
 * catalogue cannot be loaded, the console stays English.
 */
export async function startLanguage(): Promise<void> {
  const stored = readStoredLanguage()
  const ofBrowser = navigator.languages
  const wanted = stored === undefined ? ofBrowser : [stored]
  const { code, locale } = chooseLanguage(wanted)
  // The browser's own tag, such as `en-GB`, is more exact than the stored language.
  const exact = ofBrowser.find((tag) => chooseLanguage([tag]).locale === tag && tag.startsWith(code))
  try {
    await setLanguage(code, exact ?? locale)
  } catch {
    await setLanguage('en')
  }
  document.documentElement.lang = current.code
  document.documentElement.dir = direction()
}

/** Loads a catalogue and renders all further texts from it. */
export async function setLanguage(code: LanguageCode, locale: string = code): Promise<void> {
  current = { code, locale, catalogue: code === 'en' ? en : await loaders[code]() }
}

/** Remembers the choice, and loads the page again, so that every text is in the new language. */
export function changeLanguage(code: LanguageCode): void {
  localStorage.setItem(STORAGE_KEY, code)
  window.location.reload()
}

function readStoredLanguage(): LanguageCode | undefined {
  try {
    const stored = localStorage.getItem(STORAGE_KEY)
    return languages.find(({ code }) => code === stored)?.code
  } catch {
    return undefined
  }
}

export function currentLanguage(): LanguageCode {
  return current.code
}

/** The BCP 47 tag for `Intl`; undefined is the browser's own. */
export function locale(): string | undefined {
  return current.locale
}

export function direction(): 'ltr' | 'rtl' {
  return current.code === 'ar' ? 'rtl' : 'ltr'
}

/** Returns a text in the current language; numbers are formatted, and `count` selects the plural form. */
export function t<K extends Key>(key: K, ...[values]: Values<K>): string {
  const given = (values ?? {}) as Readonly<Record<string, string | number>>
  return readText(key, given.count).replaceAll(PARAMETER, (all, name: string) => {
    const value = given[name]
    return typeof value === 'number' ? new Intl.NumberFormat(current.locale).format(value) : (value ?? all)
  })
}

/** Matches a parameter, such as `{name}`. */
export const PARAMETER = /\{(\w+)\}/g

/** Returns a text with its parameters unchanged. */
export function readText(key: Key, count?: unknown): string {
  const dot = key.indexOf('.')
  const area = current.catalogue[key.slice(0, dot) as Area] as Readonly<Record<string, string | Plurals>>
  const text = area[key.slice(dot + 1)] as string | Plurals
  if (typeof text === 'string') return text
  const form = new Intl.PluralRules(current.locale).select(typeof count === 'number' ? count : 0)
  return text[form] ?? text.other
}
