/** Formats numbers, sizes and times in the console's language. */
import { locale, t } from './strings/language.ts'

/** Creates a format on first use, because the language is loaded later than this file. */
function lazily<T>(create: () => T): () => T {
  let created: T | undefined
  return () => {
    created ??= create()
    return created
  }
}

const whole = lazily(() => new Intl.NumberFormat(locale()))
const relative = lazily(() => new Intl.RelativeTimeFormat(locale(), { numeric: 'auto' }))
const narrow = lazily(() => new Intl.RelativeTimeFormat(locale(), { numeric: 'auto', style: 'narrow' }))
const clock = lazily(() => new Intl.DateTimeFormat(locale(), { timeStyle: 'short' }))
const date = lazily(() => new Intl.DateTimeFormat(locale(), { dateStyle: 'medium' }))
const absolute = lazily(() => new Intl.DateTimeFormat(locale(), { dateStyle: 'medium', timeStyle: 'short' }))

const units = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['week', 604_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const

export function renderNumber(value: number): string {
  return whole().format(value)
}

export function renderMilliseconds(milliseconds: number): string {
  if (milliseconds < 1_000) return `${whole().format(Math.round(milliseconds))} ms`
  const digits = milliseconds < 10_000 ? 2 : 1
  const format = new Intl.NumberFormat(locale(), {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
  return `${format.format(milliseconds / 1_000)} s`
}

/** Renders Unix seconds relative to now. */
export function renderAgo(seconds: number, nowMs = Date.now()): string {
  return renderDistance(relative(), seconds, nowMs)
}

/** Renders Unix seconds relative to now, as short as the language allows, such as `5m ago`. */
export function renderShortAgo(seconds: number, nowMs = Date.now()): string {
  return renderDistance(narrow(), seconds, nowMs)
}

function renderDistance(format: Intl.RelativeTimeFormat, seconds: number, nowMs: number): string {
  const distance = seconds - nowMs / 1_000
  const [unit, size] = units.find(([, size]) => Math.abs(distance) >= size) ?? ['second', 1]
  return unit === 'second' ? t('common.justNow') : format.format(Math.round(distance / size), unit)
}

/** Renders Unix seconds as the time of day. */
export function renderClock(seconds: number): string {
  return clock().format(seconds * 1_000)
}

/** Renders the day of Unix seconds. */
export function renderDate(seconds: number): string {
  return date().format(seconds * 1_000)
}

/** Renders Unix seconds as a date and time. */
export function renderMoment(seconds: number): string {
  return absolute().format(seconds * 1_000)
}

/** Renders a UTC day (`2026-01-31`) relative to today. */
export function renderDay(day: string, nowMs = Date.now()): string {
  const days = Math.round(
    (Date.parse(day) - Date.parse(new Date(nowMs).toISOString().slice(0, 10))) / 86_400_000,
  )
  return relative().format(days, 'day')
}

const compact = lazily(
  () => new Intl.NumberFormat(locale(), { notation: 'compact', maximumFractionDigits: 1 }),
)

/** Renders a number in compact notation, such as `12K`. */
export function renderCompact(value: number): string {
  return compact().format(value)
}

/** Renders a duration as `350 ms` or `1.2 s`, with a non-breaking space. */
export function renderShortTime(milliseconds: number): string {
  if (milliseconds < 1_000) return `${whole().format(Math.round(milliseconds))}\u00a0ms`
  return `${compact().format(milliseconds / 1_000)}\u00a0s`
}

/** Renders US dollars; amounts below one dollar have up to three significant digits. */
export function renderUsd(amount: number): string {
  const size = Math.abs(amount)
  const digits = size === 0 || size >= 1 ? 2 : Math.min(9, Math.max(2, 2 - Math.floor(Math.log10(size))))
  const format = new Intl.NumberFormat(locale(), {
    style: 'currency',
    currency: 'USD',
    currencyDisplay: 'narrowSymbol',
    minimumFractionDigits: 2,
    maximumFractionDigits: digits,
  })
  return format.format(amount)
}

const sizeUnits = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'] as const

/** Renders bytes in decimal units, such as `1.4 MB`. */
export function renderSize(sizeBytes: number): string {
  const power = sizeBytes < 1 ? 0 : Math.min(Math.floor(Math.log10(sizeBytes) / 3), sizeUnits.length - 1)
  const unitDisplay = power === 0 ? 'long' : 'short'
  const digits = power === 0 ? 0 : 1
  const format = new Intl.NumberFormat(locale(), {
    style: 'unit',
    unit: sizeUnits[power] ?? 'byte',
    unitDisplay,
    maximumFractionDigits: digits,
  })
  return format.format(sizeBytes / 1_000 ** power)
}

/** Renders a share from 0 to 1 as a whole percentage, rounded down so that 100 % means complete. */
export function renderShare(share: number): string {
  return new Intl.NumberFormat(locale(), { style: 'percent' }).format(Math.floor(share * 100) / 100)
}
