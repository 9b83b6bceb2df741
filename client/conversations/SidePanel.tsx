/** Shows the explanation of the selected turn, and the facts about the conversation. */
import './side.css'
import { Tabs } from '@mantine/core'
import { t } from '../strings/language.ts'
import { Annotations } from './about/Annotations.tsx'
import { Facts } from './about/Facts.tsx'
import type { Conversation, Turn } from './queries.ts'
import { RatingPanel } from './turn/RatingPanel.tsx'
import { WhyPanel } from './turn/WhyPanel.tsx'

interface SidePanelProps {
  readonly conversation: Conversation
  readonly turn: Turn | undefined
  readonly tab: SideTab
  readonly onTab: (tab: SideTab) => void
}

export type SideTab = 'why' | 'about'

export function SidePanel({ conversation, turn, tab, onTab }: SidePanelProps) {
  return (
    <Tabs
      value={tab}
      onChange={(value) => onTab(value === 'about' ? value : 'why')}
      keepMounted={false}
      className="side"
    >
      <Tabs.List grow>
        <Tabs.Tab value="why">{t('conversations.why')}</Tabs.Tab>
        <Tabs.Tab value="about">{t('conversations.aboutTab')}</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="why" className="side-panel">
        {turn === undefined ? (
          <p className="side-empty">{t('conversations.noTurn')}</p>
        ) : (
          <>
            <WhyPanel key={turn.id} turn={turn} />
            <RatingPanel key={`rating ${turn.id}`} turn={turn} />
          </>
        )}
      </Tabs.Panel>
      <Tabs.Panel value="about" className="side-panel">
        <Annotations conversation={conversation} />
        <Facts conversation={conversation} />
      </Tabs.Panel>
    </Tabs>
  )
}
