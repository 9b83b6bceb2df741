/** Lists the form's sections and marks the one at the top of the window. */

import { Stack, UnstyledButton } from '@mantine/core'
import { useEffect, useRef, useState } from 'react'
import { t } from '../../strings/language.ts'

const names = [
  'basics',
  'behavior',
  'serverTools',
  'pageTools',
  'chatWindow',
  'attachments',
  'conversations',
  'visitors',
] as const

export type SectionName = (typeof names)[number]

export function sectionId(name: SectionName): string {
  return `section-${name}`
}

export function SectionList() {
  const { current, choose } = useCurrentSection()
  return (
    <Stack component="nav" gap={2} aria-label={t('editor.sections')} className="section-list">
      {names.map((name) => (
        <UnstyledButton
          key={name}
          className="section-link"
          aria-current={name === current ? 'location' : undefined}
          onClick={() => choose(name)}
        >
          {t(`editor.${name}`)}
        </UnstyledButton>
      ))}
    </Stack>
  )
}

/** Distance in pixels from the window's top at which a section becomes the current one. */
const THRESHOLD = 160

/** Events that indicate that the user scrolls the page. */
const userScrolls = ['wheel', 'touchmove', 'keydown', 'pointerdown'] as const

function useCurrentSection() {
  const [current, setCurrent] = useState<SectionName>(names[0])
  const chosen = useRef<SectionName>(undefined)
  useEffect(() => {
    const update = () => setCurrent(chosen.current ?? findCurrent())
    const release = () => {
      chosen.current = undefined
    }
    window.addEventListener('scroll', update, { passive: true })
    for (const event of userScrolls) window.addEventListener(event, release, { passive: true })
    return () => {
      window.removeEventListener('scroll', update)
      for (const event of userScrolls) window.removeEventListener(event, release)
    }
  }, [])
  return {
    current,
    /** Keeps the section marked even if it is too far down the page to reach the window's top. */
    choose: (name: SectionName) => {
      chosen.current = name
      setCurrent(name)
      document.getElementById(sectionId(name))?.scrollIntoView({ block: 'start' })
    },
  }
}

function findCurrent(): SectionName {
  const { scrollHeight } = document.documentElement
  if (window.scrollY > 0 && window.scrollY + window.innerHeight >= scrollHeight - 2) return 'conversations'
  return (
    names.findLast((name) => {
      const top = document.getElementById(sectionId(name))?.getBoundingClientRect().top
      return top !== undefined && top <= THRESHOLD
    }) ?? names[0]
  )
}
