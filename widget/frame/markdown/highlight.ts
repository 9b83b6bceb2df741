/** Colors code; loaded only when an answer contains code in a known language. */
import type { ElementContent } from 'hast'
import bash from 'highlight.js/lib/languages/bash'
import c from 'highlight.js/lib/languages/c'
import cpp from 'highlight.js/lib/languages/cpp'
import csharp from 'highlight.js/lib/languages/csharp'
import css from 'highlight.js/lib/languages/css'
import diff from 'highlight.js/lib/languages/diff'
import go from 'highlight.js/lib/languages/go'
import ini from 'highlight.js/lib/languages/ini'
import java from 'highlight.js/lib/languages/java'
import javascript from 'highlight.js/lib/languages/javascript'
import json from 'highlight.js/lib/languages/json'
import kotlin from 'highlight.js/lib/languages/kotlin'
import php from 'highlight.js/lib/languages/php'
import powershell from 'highlight.js/lib/languages/powershell'
import python from 'highlight.js/lib/languages/python'
import ruby from 'highlight.js/lib/languages/ruby'
import rust from 'highlight.js/lib/languages/rust'
import sql from 'highlight.js/lib/languages/sql'
import swift from 'highlight.js/lib/languages/swift'
import typescript from 'highlight.js/lib/languages/typescript'
import xml from 'highlight.js/lib/languages/xml'
import yaml from 'highlight.js/lib/languages/yaml'
import { createLowlight } from 'lowlight'

const lowlight = createLowlight({
  ...{ bash, c, cpp, csharp, css, diff, go, ini, java, javascript, json, kotlin, php, powershell, python },
  ...{ ruby, rust, sql, swift, typescript, xml, yaml },
})

/** Maximum length of code that is colored, in UTF-16 code units. */
const MAX_LENGTH = 12_000

/** Returns the colored parts, or undefined for unknown languages and long code. */
export function highlight(code: string, language: string): ElementContent[] | undefined {
  const name = language.toLowerCase()
  if (code.length > MAX_LENGTH || !lowlight.registered(name)) return undefined
  // Contains only text and `span` elements.
  return lowlight.highlight(name, code, { prefix: 'code-' }).children as ElementContent[]
}
