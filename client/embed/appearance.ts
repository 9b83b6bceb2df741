/** Reads the widget's appearance from a definition. */
import { defaultAppearance } from '../../widget/appearance.ts'
import { valueAt } from '../agents/object-paths.ts'
import { isColor } from './check-contrast.ts'
import type { Options } from './embed-code.ts'

/** Options that only a page can set, because the definition has no fields for them. */
export interface PageOptions {
  readonly welcomeMessage: string
  readonly placeholder: string
  readonly autoOpen: boolean
}

/** The widget's defaults, which the embed code omits. */
export const defaultPageOptions: PageOptions = { welcomeMessage: '', placeholder: '', autoOpen: false }

type Definition = Readonly<Record<string, unknown>>

/**
 * Defaults for options that the definition does not set; an empty string removes the agent's text or image.
 */
const defaults: Options = {
  theme: 'auto',
  ...defaultAppearance,
  avatar: '',
  logo: '',
  launcherLabel: '',
  teaser: '',
}

/**
 * Returns the options that make the widget look as `definition` says, regardless of the agent's saved
 * version.
 */
export function readOptions(definition: Definition): Options {
  const { colorScheme, ...theme } = (valueAt(definition, ['embed', 'theme']) ?? {}) as Record<string, unknown>
  const given = { ...theme, theme: colorScheme, title: textAt(definition, 'title') }
  const known = Object.entries(given).filter(([name, value]) => isUsable(name, value)) as [string, string][]
  const options: Options = { ...defaults, title: String(definition.name ?? ''), ...Object.fromEntries(known) }
  const greeting = textAt(definition, 'greeting')
  return {
    headerColor: String(options.primaryColor),
    ...options,
    ...(greeting !== undefined && { greeting }),
  }
}

/** Returns false for invalid colors, which the widget rejects and the form reports, and for absent values. */
function isUsable(name: string, value: unknown): boolean {
  return /Color$/.test(name) ? isColor(value) : value !== undefined && value !== null
}

function textAt(definition: Definition, field: string): string | undefined {
  const text = valueAt(definition, ['embed', field])
  return typeof text === 'string' && text !== '' ? text : undefined
}

/**
 * Returns the options that a page needs until the agent's draft is saved, and those that only a page can set.
 */
export function listChanges(draft: Definition, saved: Definition, page: PageOptions): Options {
  const [next, now] = [readOptions(draft), readOptions(saved)]
  const isHeaderColored = [draft, saved].some((one) => valueAt(one, ['embed', 'theme', 'headerColor']))
  const changed = Object.entries(next).filter(
    ([name, value]) => value !== now[name] && (name !== 'headerColor' || isHeaderColored),
  )
  const own = Object.entries(page).filter(
    ([name, value]) => value !== defaultPageOptions[name as keyof PageOptions],
  )
  return Object.fromEntries([...changed, ...own])
}
