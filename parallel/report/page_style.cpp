#include "report/page.hpp"

namespace braid::parallel {

std::string_view page_style() noexcept {
  return R"css(
:root {
  color-scheme: light dark;
  --back: #fbfbfa; --card: #ffffff; --text: #1d2327; --soft: #5b6670; --line: #dde1e4; --warn: #8a5a00; --warn-back: #fff4dc;
  --scatter: #3fa7cf; --replicate: #b8a531; --compute: #3f74b0; --gather: #2b8a3e; --reduce: #dd5567; --optimizer: #a3387a; --idle: #c9ced2;
  --parameters: #3f74b0; --gradients: #dd5567; --state: #a3387a; --activations: #2b8a3e; --cache: #b8a531; --outputs: #3fa7cf;
  --strong: #3f74b0; --weak: #dd5567;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #14181b; --card: #1d2327; --text: #e6e9eb; --soft: #a2adb6; --line: #394249; --warn: #ffcf73; --warn-back: #3a2e12;
    --scatter: #6cc6e8; --replicate: #d6c65a; --compute: #6fa3dd; --gather: #57b86c; --reduce: #f0808f; --optimizer: #d172ae; --idle: #434d55;
    --parameters: #6fa3dd; --gradients: #f0808f; --state: #d172ae; --activations: #57b86c; --cache: #d6c65a; --outputs: #6cc6e8;
    --strong: #6fa3dd; --weak: #f0808f;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 70rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0.5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 0 0 0.5rem; }
p { margin: 0.35rem 0; }
.soft { color: var(--soft); font-size: 0.9rem; }
.note { color: var(--warn); background: var(--warn-back); border-radius: 0.4rem; padding: 0.4rem 0.7rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 0.6rem; padding: 0.9rem; margin: 0.9rem 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: 0.6rem; }
.tile { border: 1px solid var(--line); border-radius: 0.5rem; padding: 0.5rem 0.7rem; }
.tile b { display: block; font-size: 1.2rem; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
.legend { display: flex; flex-wrap: wrap; gap: 0.2rem 0.9rem; padding: 0; margin: 0.4rem 0; list-style: none; font-size: 0.85rem; }
.legend i { display: inline-block; width: 0.8rem; height: 0.8rem; border-radius: 0.15rem; margin-right: 0.35rem; vertical-align: -0.05rem; }
select, button { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--line); border-radius: 0.4rem; }
select, button { padding: 0.35rem 0.7rem; min-height: 2.6rem; min-width: 2.6rem; max-width: 100%; }
.controls { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; margin-bottom: 0.5rem; }
svg { display: block; }
svg text { fill: var(--text); font-size: 12px; font-family: system-ui, sans-serif; }
svg .soft { fill: var(--soft); }
svg .axis { stroke: var(--line); }
.span { stroke: var(--card); stroke-width: 0.5; cursor: pointer; }
.span:hover, .span:focus { stroke: var(--text); stroke-width: 1.5; outline: none; }
#detail { min-height: 1.5rem; overflow-wrap: anywhere; }
pre { overflow-x: auto; font-size: 0.8rem; }
)css";
}

}  // namespace braid::parallel
