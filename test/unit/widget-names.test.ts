/** Tests that the widget has the console's languages, and names and parameters in all of them. */
import { expect, test } from 'vitest'
import { languages as consoleLanguages } from '../../client/strings/language.ts'
import { ar } from '../../widget/frame/strings/ar.ts'
import { de } from '../../widget/frame/strings/de.ts'
import { en } from '../../widget/frame/strings/en.ts'
import { es } from '../../widget/frame/strings/es.ts'
import { fr } from '../../widget/frame/strings/fr.ts'
import { he } from '../../widget/frame/strings/he.ts'
import { it } from '../../widget/frame/strings/it.ts'
import { ja } from '../../widget/frame/strings/ja.ts'
import { pt } from '../../widget/frame/strings/pt.ts'
import { chooseLanguage, loadLanguage } from '../../widget/frame/strings/strings.ts'
import { zh } from '../../widget/frame/strings/zh.ts'
import { dismissNames, launcherNames } from '../../widget/host/words.ts'

const languages = { ar, de, en, es, fr, he, it, ja, pt, zh }

test.each(consoleLanguages)('the widget has the console language $code', async ({ code }) => {
  await loadLanguage([code])
  const { tag, strings } = chooseLanguage([code])
  expect(tag).toBe(code)
  expect(strings).toBe(languages[code])
})

test.each(Object.entries(languages))(
  'the texts in %s have the parameters of the English texts',
  (_code, strings) => {
    expect(parametersIn(strings)).toEqual(parametersIn(en))
  },
)

/** Lists the parameters of each text by its path; plural forms count as one text. */
function parametersIn(texts: object, path = ''): [path: string, parameters: string[]][] {
  return Object.entries(texts).flatMap(([key, text]: [string, string | object]) => {
    if (typeof text !== 'string' && !('other' in text && path === ''))
      return parametersIn(text, `${path}${key}.`)
    const plain = typeof text === 'string' ? text : String((text as { other: string }).other)
    return [[`${path}${key}`, [...new Set(plain.match(/\{\w+\}/g) ?? [])].sort()]]
  })
}

test('the launcher has the same names before and after the frame has loaded, in all languages', () => {
  const names = Object.entries(languages).map(([tag, { openChat, closeChat }]) => [
    tag,
    `${openChat}|${closeChat}`,
  ])
  expect(launcherNames).toEqual(Object.fromEntries(names))
})

test("the teaser's close button has a name in all languages", () => {
  expect(Object.keys(dismissNames)).toEqual(Object.keys(languages))
})
