/** Lists the form's sections and marks the one at the top of the window. */
import { Stack, UnstyledButton } from '@mantine/core'
import { useEffect, useRef, useState } from 'react'

const titles = ['Basics', 'Behavior', 'Server tools', 'Page tools', 'Chat window', 'Conversations'] as const

export type SectionTitle = (typeof titles)[number]

export function sectionId(title: SectionTitle): string {
  return `section-${title.toLowerCase().replaceAll(' ', '-')}`
}

export function SectionList() {
  const { current, choose } = useCurrentSection()
  return (
    <Stack component="nav" gap={2} aria-label="Sections" className="section-list">
      {titles.map((title) => (
        <UnstyledButton
          key={title}
          className="section-link"
          aria-current={title === current ? 'location' : undefined}
          onClick={() => choose(title)}
        >
          {title}
        </UnstyledButton>
      ))}
    </Stack>
  )
}

/** Distance in pixels from the window's top at which a section becomes the current one. */
const THRESHOLD = 160

/** Events that scroll the page by the user's hand. */
const userScrolls = ['wheel', 'touchmove', 'keydown', 'pointerdown'] as const

function useCurrentSection() {
  const [current, setCurrent] = useState<SectionTitle>(titles[0])
  const chosen = useRef<SectionTitle>(undefined)
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
    choose: (title: SectionTitle) => {
      chosen.current = title
      setCurrent(title)
      document.getElementById(sectionId(title))?.scrollIntoView({ block: 'start' })
    },
  }
}

function findCurrent(): SectionTitle {
  const { scrollHeight } = document.documentElement
  if (window.scrollY > 0 && window.scrollY + window.innerHeight >= scrollHeight - 2) return 'Conversations'
  return (
    titles.findLast((title) => {
      const top = document.getElementById(sectionId(title))?.getBoundingClientRect().top
      return top !== undefined && top <= THRESHOLD
    }) ?? titles[0]
  )
}
