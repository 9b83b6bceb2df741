/**
 * Tests that the console's catalogues match, that parameters are filled in, and that no visible text is
 * outside the catalogues.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'vite'
import { afterEach, describe, expect, test } from 'vitest'
import { renderNumber } from '../../client/format.ts'
import { en } from '../../client/strings/en/index.ts'
import { chooseLanguage, languages, setLanguage, t } from '../../client/strings/language.ts'

afterEach(() => setLanguage('en'))

type Text = string | Readonly<Record<string, string>>
type Texts = Readonly<Record<string, Readonly<Record<string, Text>>>>

const codes = languages.map(({ code }) => code)
const english: Texts = en

async function load(code: string): Promise<Texts> {
  const module = (await import(`../../client/strings/${code}/index.ts`)) as Readonly<Record<string, Texts>>
  return module[code] ?? {}
}

/** Returns all texts of a catalogue by area and key. */
function flatten(catalogue: Texts): Map<string, Text> {
  return new Map(
    Object.entries(catalogue).flatMap(([area, texts]) =>
      Object.entries(texts).map(([key, text]): [string, Text] => [`${area}.${key}`, text]),
    ),
  )
}

const parametersOf = (text: string) => [...new Set(text.match(/\{\w+\}/g) ?? [])].sort()
const generalForm = (text: Text | undefined) => (typeof text === 'object' ? (text.other ?? '') : (text ?? ''))

describe.each(codes.filter((code) => code !== 'en'))('the console catalogue in %s', (code) => {
  test('has the keys of the English catalogue', async () => {
    expect([...flatten(await load(code)).keys()]).toEqual([...flatten(english).keys()])
  })

  test('has plural forms and parameters in the same texts as the English catalogue', async () => {
    const texts = flatten(await load(code))
    for (const [key, text] of flatten(english)) {
      const own = texts.get(key)
      expect([key, typeof own]).toEqual([key, typeof text])
      expect([key, parametersOf(generalForm(own))]).toEqual([key, parametersOf(generalForm(text))])
    }
  })

  test('has no empty text and only plural forms of its language', async () => {
    const forms = new Intl.PluralRules(code).resolvedOptions().pluralCategories
    for (const [key, text] of flatten(await load(code))) {
      const plurals = typeof text === 'string' ? { other: text } : text
      expect([key, Object.values(plurals).filter((form) => form.trim() === '')]).toEqual([key, []])
      expect(forms, key).toEqual(expect.arrayContaining(Object.keys(plurals)))
    }
  })
})

test.each([
  [['de-AT', 'en'], 'de', 'de-AT'],
  [['pl', 'pt-BR', 'en'], 'pt', 'pt-BR'],
  [['zh-Hant-TW'], 'zh', 'zh-Hant-TW'],
  [['pl'], 'en', 'en'],
  [[], 'en', 'en'],
])('from the languages %j, the console chooses %s with the formats of %s', (wanted, code, locale) => {
  expect(chooseLanguage(wanted)).toEqual({ code, locale })
})

test('a count in a text is formatted for the language and selects its plural form', async () => {
  expect(t('common.rowsSelected', { count: 1 })).toBe('1 row selected')
  expect(t('common.rowsSelected', { count: 1200 })).toBe('1,200 rows selected')
  await setLanguage('de')
  expect(t('common.rowsSelected', { count: 1200 })).toBe('1.200 Zeilen ausgewählt')
  await setLanguage('ar')
  expect(t('common.rowsSelected', { count: 2 })).toBe('حُدد صفان')
})

test("numbers are formatted for the locale's region", async () => {
  await setLanguage('en', 'en-IN')
  expect(renderNumber(100_000)).toBe('1,00,000')
})

/** The folder of the catalogues, and the page for developers, which is in English. */
const outside = ['strings', 'design']

const client = fileURLToPath(new URL('../../client/', import.meta.url))
const translated = readdirSync(client, { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.tsx?$/.test(path) && !path.startsWith('node_modules/'))
  .filter((path) => !outside.includes(path.split('/')[0] ?? ''))

test.each(translated)('client/%s has no visible text outside the catalogues', (path) => {
  expect(findVisibleTexts(path, readFileSync(`${client}${path}`, 'utf8'))).toEqual([])
})

test('the scan for visible texts finds texts, attributes, properties and messages', () => {
  const code = `
    const column = { name: 'Created', icon: 'plus' }
    showDone('Key created')
    const page = <Page title="Keys" icon="keys" about={isNew ? 'New key' : t('keys.key')}>Some text<Code>x y</Code></Page>`
  expect(findVisibleTexts('page.tsx', code)).toEqual([
    'Created',
    'Key created',
    'Keys',
    'New key',
    'Some text',
  ])
})

interface Node {
  readonly type: string
  readonly [field: string]: unknown
}

const visibleNames = [
  ...['about', 'action', 'all', 'alt', 'aria-label', 'description', 'heading', 'label', 'loss', 'name'],
  ...['nothingFound', 'placeholder', 'title', 'what'],
]
/** Matches any text except a single lower-case word, which is an identifier. */
const isSentence = /^\P{Ll}|\s/u
const isTitle = /^\p{Lu}\w/u
/** Elements that contain code, which is the same in all languages. */
const codeElements = ['Code', 'Kbd', 'code', 'pre']
/** Product names, and parts of code. */
const allowed = ['Parley', 'Ctrl K', '/console/sign-in#…', '{ keep: 30d }', 'tool_', 'postMessage_']
const messages = ['showDone', 'showUndo', 'showProblem', 'useTitle']

/** Returns the literal texts of a file that users see. */
function findVisibleTexts(path: string, code: string): string[] {
  const found: string[] = []
  visit(parseSync(path, code).program as unknown as Node)
  return found

  function visit(node: Node): void {
    if (node.type === 'JSXElement' && codeElements.includes(nameOf(node.openingElement, 'name'))) return
    if (node.type === 'JSXText') report(node.value)
    if (node.type === 'JSXElement' || node.type === 'JSXFragment')
      for (const child of node.children as readonly Node[]) reportLiterals(child)
    if (node.type === 'JSXAttribute' && visibleNames.includes(nameOf(node, 'name')))
      reportLiterals(node.value)
    if (node.type === 'Property' && visibleNames.includes(nameOf(node, 'key')))
      reportLiterals(node.value, isTitle)
    if (node.type === 'CallExpression' && messages.includes(nameOf(node, 'callee')))
      for (const argument of node.arguments as readonly Node[]) reportLiterals(argument)
    for (const value of Object.values(node)) {
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child)
    }
  }

  /** Reports a literal, including one in a branch of a condition. */
  function reportLiterals(value: unknown, pattern = isSentence): void {
    if (!isNode(value)) return
    if (value.type === 'Literal' && pattern.test(String(value.value))) report(value.value)
    if (value.type === 'TemplateLiteral')
      for (const { value: part } of value.quasis as readonly { value: { cooked: string } }[])
        if (isSentence.test(part.cooked)) report(part.cooked)
    const inner = {
      JSXExpressionContainer: ['expression'],
      ConditionalExpression: ['consequent', 'alternate'],
    }
    for (const field of inner[value.type as keyof typeof inner] ?? []) reportLiterals(value[field], pattern)
  }

  function report(value: unknown): void {
    const text = typeof value === 'string' ? value.trim() : ''
    if (/\p{L}{2}/u.test(text) && !allowed.includes(text)) found.push(text)
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

/** Returns the name of an element, an attribute, a property or a called function. */
function nameOf(node: unknown, field: string): string {
  const name = isNode(node) ? node[field] : undefined
  return isNode(name) ? String(name.name ?? name.value) : ''
}
