/** Tests that the names of the launcher and of the teaser exist in all languages of the widget. */
import { expect, test } from 'vitest'
import { ar } from '../../widget/frame/strings/ar.ts'
import { de } from '../../widget/frame/strings/de.ts'
import { en } from '../../widget/frame/strings/en.ts'
import { es } from '../../widget/frame/strings/es.ts'
import { fr } from '../../widget/frame/strings/fr.ts'
import { he } from '../../widget/frame/strings/he.ts'
import { ja } from '../../widget/frame/strings/ja.ts'
import { pt } from '../../widget/frame/strings/pt.ts'
import { zh } from '../../widget/frame/strings/zh.ts'
import { dismissNames, launcherNames } from '../../widget/host/words.ts'

const languages = { ar, de, en, es, fr, he, ja, pt, zh }

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
