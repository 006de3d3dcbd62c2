"""Weights of `ThroatSoundDetector`, written by ``tests/training/throat_sounds.py``.

They were learnt from recordings by K. J. Piczak (ESC-10, CC BY 3.0, clips of Freesound),
F. W. Buhl (EmoGator), V. Panayotov and others (LibriSpeech, CC BY 4.0), Picovoice, and people who
gave theirs to the public domain; tests/training/README.md names all.
"""

from __future__ import annotations

from ._embedded_weights import Packed

WEIGHTS = Packed(
    values=r"""
1pWH~0sQp{00ja4`uzd^{`>v`{|EmA{{a8||NH>^1O5a7`uX|+0tEyN0Q(IA3;F^1{r&F+0RaL0|M~&{00R920sjH~1N{jC0
sa910{#E~{rvj@{{sIB000C41^WO0|Nr&^0005~{r&&{{ssgC2LlHL1^fm61or~?0{Z{~{r~y@{sa390ssL50R8_1{sH*^`~
&^^2m$>60t5jD3I7BA1p@#42l)a4`~Uj``~ms>{0RRD0005|{`>$2|NZs@`2zj+2>$>8{{a040{#U50{{C13HkpD`T+j~|NZ
j*0}J;B|NjL0`uqd{1Oxd2_yqm+4gLQI00sUG0|5d20|5E_2KEC7`1$<={{->?0|xmA{R0X8{QCp@1O)s2{Q>^;3;zE90|5a
F2Lb~92m1d73HJH|{{8;}00#8`0RjC50RRR6{Q3q01Ox>B0R8{&5(oPK0|EyR0|5jC0SEa53H1R10R#X6`vda_1pxv4`~Cm}
0sH^{0R#m81p5H@5CZ@H0s;RF`vd+100a652l)W|{{#O1@CW$^2KfX3|M&g^3i|!}`wRv40|5a12>b{E0R{;R0t5c|`~w6B1
pE5^|M~y?`4Ra21O5aA|MdC?1^oT{0SgZD3j6@|2L1^D`U(US2Lbr_000093j6>50r&&__7dy?1^Wc|0{H+20t5O21r`(W1o
!~w1pER51_1*T0Rj2_1OfE~3HSp2`}X?=?Goz$5d8`J3-}2P1pNX00{Zy}0Qdp}_x=9-0{H;?^929?`~Ls^{Q&^}00aL3{`m
m?0R9980{sR71N;T~{{Hm?2lfO3009911O)%`_5K3-0|o>C0t5Q}0R#U1{{RF4{rm(2{R9950{sFA0R8s_0QLd`{{RC21O@%
@_yYz30RRO31O)s0`~v;_1p)#A{`dq1{RRIC{QU(70sQp?1^EE`00sR5{Q>^>`~w971N;2^2mSv6`uYL^0RsU5`Tzw4{{aC7
`vLt2{{r>^`Tha>{{H_20R#H@{{R690002_0{#66{QLt31N{F0{s;dF2KxjA`2PR~0|EO1_W=R;0sH|71Oxl~00jF40R;X30
sR03|M&(00RjH}0|)&J0Qdw3`Thn51OWX4{`Ua*1P1*B1_b>B0S5d70|NB||Ni*}{Q3j_0RaC21^)aA|NjL3`uqt52m%8G0Q
3O&2m|^21^oj200RX61^)5?2Kxg5{r~*{^8Nt``~Uj?`~?0A{{0030R{sA0rCL<`~dy={{995`~dy{0RZ><{sIN~`~dp|_Xq
_91O5a4`~~|A1^oQ{{0;*60saC8`2YU>`UV93`u_y`0Q~~}0|x*F0{H~~0}KZJ2l@pE1ONFE0{#B<_znj33iJU4`uYL@@&*3
|@%{q(|Mde0{|5sB1q2BK2@V4O0{jO62Lt>J2><x}`4JEM2=oE>_Vxn=0RjOC_5b+(1O5U8{|g5M|N8_43kmuD5c>lC4g&=V
`ThI>0{#XC{r&>|{Q?32|Na5^{s0F80S5j7`T_v}{|Em9|NRB{0{i~`1N;X3{`m<0`v3k1{Qw930s#B}`2q#}_WKA00|EU7{
{i&}0RRO81pff~`||_;`v?OC`vn960R8;|{R9L4`vC$50Q>;=009XJ00RjE`vmd_`~3#=1^)o}0sjUD`UMX8`33$2|Nj2|{s
900`~?380sa2|0RsUF{s9UC{sH?0{QCp=0|x&50t5^H0S5>P{RH;~1OWd8`~m<2`~L$B{ssT}1OWC2`vn910RH*}0{R2{{{j
B`00{#I0RRIL00Q_21pWd9`2Yg|0s#dO1Ooc^{si#_`2zk10s-^`3G@c_{{#H|{s;{L0|WvO{{#I21_T2F2>%BD2?hZM0r&#
``3(610|oN~0|4>~1^E8){ssXA{{jjJ{{R62{|E>I1^@v74*~)L2Lt;4|NI00{ssR60}S~600Q;@`~v;{^#ce8{{aaD{0IF0
1O){C1PA>72KxQ|1OWf|{{8;?{{jI30{r{_{{sIA`Uv_8_y+_B0sH_41p@*H3jhB5{Rjy81_1m7|N8{`@&f+x@%;n=0rCU(2
m$^70}1{G2LS>D{r3O<0t5gE2>1T``uz&||MvU_0rv+3?*#t&<@@>s`S$(#5B~x91ONd92LSy21pWE*2mAd31@r#;1N#y6{P
h0v008{~{Qmd*@&EV%1Ns302>t!}1OxvE0{!~_0|5T{2KogA^7{Gz1^xa2`T_g&00IUD^!N$_3jhZD`1tw$2mS&I{Qd*|{s8
>_4D9;?1N#g7{Q3d^{rdj~`v3<62LAm0{r3qD1px*E_xAn<|NaaL`~mv?0Q~*~{_+3={QU+2{R{g71N-~__yGX={{RO80R9F
50s;U4_W1}2_yYL~{Ra&B0s8p;0s#2_{Qe61_yzn5{QLm@0tW;9`~Uq2_5=R@1ONU2^aTP0`33t01^xo}0t5B>{00R40tEy8
`v3O^{{jR40|*2I0R03B@B;w*0s#5`00{v90s8|35Bvc500Z~<{s{&G0RjOD0R#F40|Ed60R#vH{{#UH`~CCz2Lkp1{0apK`
Tzz5688i2`~dg>{|X5J{|f*J0t5N}1_1y81po&72nGBF`Sk(&3<UZB{0sX50Q>|C2=@K=_W||+1PKZQ0tW#E0|Na30|5N?5&
Q%E1qAr~^ZNk*2L%2A0t))||NZ|4{{j2|`U3s{1_28L0tNg13;+840|@&51Ni{<`1kkv_w@k%1P1{A2LuZH0{H_6`Ud+0_X`
044f_2G0R;#C2KfU2{ssN~0RH<21oQ#__V@$;0RQ|00R95-0rL9%@&x$?`v3*{1oZ_8{sRCG3Hk*C`uzw0_4oP&{Qd(0_51q
&^ZoG#`S=6&4D|E!`TPM11Oo#3{{jsD008y{2m1p51pWpC{`dj-`U&_52KM{~^aAw+1N;F01o!#`0}uZD{Qe0E0{sF1|M~m|
`T6+!0RjO10{Z#@{sssB^$GL^0|Ng0`1<(!{r>*`0Qm^~`v?012KoN~3ho61{{#E`{rUa<0{{dC{{R8^0RsC7`vL&={`>(50
00010tx^71p)a31^4^`4f6>71PlQI0r~d=0sR06`uz;~00jgF0|Nl|{rLz7`vCp^2nq!N1^D*>{{{O21^)#6`vv*_`}zI=0|
NsI0saF4^aKC@0RIL0{qq6^^$Pj{2?YoL1pxf}{|5#B1pNd1{s8>_|N8&{0s{pQ{Q?32_yGU`|NZ^_0sZ|3008>_4g?1M0{!
~@0S)~E2K)m7{{r{-0R;g50tN>Q`T_m{`~Up~00H^?|NH|D{saU76aohS0RsI41_t>72L1*60R{K@00sg40s{mE{{{H`_WuC
`0|NW}{rCX|`T_t32LA#B{Q>w03IqWC2Kfd21_Jy6|NjB^1^@s90|@%|@B0A=0{{E{{`vm={sIFA0R;yE0sa021_A{71N#E{
2m}lJ0Rj8@3;zBC^!@|;`uX?y0RsT}0{IFA2nPuQ`vwF50SX8K`T+m|0Q>v;0sRa7{R9E^3k3NG^!fw<{rdL%2>tr{`}+m@2
mk&5@(BF`009d40RIF52LJ#42mTKQ_WT3;|NZv>009XC`~dw0`uy_!`}G0y1N`y#_xuI}0|5v3_Xr33{s#E@3jYiK0{I311@
!;`@ech53H<m1`uqC-4EPTN4E_N00|*280R0IA^Z@+!|NZ*?{rUv`{{sN}_4obx{{IL8`2q0v0|4~``u_g<2mA#40`~|2{RR
R4{`>s>{QLp`0{;X9`~3g<`T7I`1O5W}00#H``vUj`{R0C42mb*91N;a71_T5C{`>&}0sQ>|{|N&F|NQ*`{q_U{{r(911_Jl
`{{a32{s0320RI2}1pEj32Kxd8`T_m{{{H;<{{;I9{QLs|`}+a_0RRC1`vLp@0RR38{P_a`^#}C;{Qn360{;U41pNj90s8y<
00Q;^00II6{{8_J0R#R30sj8~{Q>(3`}+V3|Ns2^`2hm^{s9002?qEE2KoX4{sZv){{#X7`UC_L{r~&}2K)p2{{aI3{P+e8{
0IU51N{R2{{sO33I_WL1o{8^0t5K_00RU7`S}430Q~v_0{R30`vL+4{_X$^{sjU1|NH|3`vLy}2?zWD1pWp60{{XC00aN|`T
PS00{r~@{`v#}0RaLE3Ge#~0RsN|0savR{{Q{~0s;E}`}qO@3IYuQ0SEv6^aK9^^!)$-3iti;1_T8L5b_2G1PcQG{q+$5{RI
X5`2_R?`}z0)1p*2I`v3t2@Co}4{rm+51o->)1pxmA2>k*A0R;R1{QV06{{{#21_k~H`TqO<0s#*G?*Rh<^Zoq){{;mC0sjy
K`2Pj{4gv!G0|D{>`}qs_3kCxB`~>>~^$`2_1q2H4|N8#{_WAt*?+X3}5B~xK0{;aB4*(Sb3I+xK{QCm<3IhTK00R2@{sIU0
{`m#}{{jE~^a20>{`Uy{_X7p{1Oxs61O5O02mJ*B0rmj_0R;g3{QdI(_y_;~1O5O3{r>>~^Zo(}|M&s^{s{vE{sH>_0{s5|1
ONc}|M~m~2L%23_y_&}{sQ{``w0O91N`~{^8f?`|M>*}0tEj9{{sE|`vm_0`~L&@0Qdp=0s8>}`2Ya@`2_p;{{s300Q~*~_x
k_*0|Ng8008>~1OWK~_XGU@00Q~-`~3a@0sI92{r3g~1N-g%0R8*=1OEO30s;L6`~>|20RH#_1O5B}^#cA12mJ!_`~&v>{{9
630rUL@1OM*<{{;W_0|5L62>$;D`~mp`0ssB|0R#N>@&E=1`vn5$`UUj;0ssyK0`~j~1Nia!0t5s10{{R70QUX^0sQ?11Ns2
~0|NW__51+_`UL{(_4@h({sIUF0sjO3|NQj+1Oom81O@y41pEO70Q~^_1Na6400jT}{`~<B`~w8-1ONX4`T+b0`3C;^0sQ~_
2mt>A{|5H}2Lb>C^Zo+;2>Sv40S68H3IGlc0|y2E3<3Z90R#F2{RaC31pxy23IhZK`~m$82m<*B0{#UD0RsO3{s9O3{|W>G{
009000H>^0Q~*={0s{Q1Ooy73jY2E@%{w={0900{ssaA`u+|H_5lz100#v5_yYO-2L$~43k3K100#yB_zeF00|ET<|Mvs~2M
7QD>;VA}2K)pF0RIgA1qK!Z1PcBA2mkx{5d8lE`~(I2{{#g00R8*;{|N#50tf#8`1u3@`27X`{{#m82muBB1OEgF{`&t000a
N@1ory^`3wI90RZ{<{sa2``T_z61^590`UnL80|x~72?G59{{004{{8&~2m}H4`2Yk8`vwI5{|Em70{r^{`T+t31^NO4{RR5
~_XPa<00II3{QLy{0s{X31^NK^`u_t00tWu~`vd_4{`vd>{Qd#=1OxsA{sH|42mbp500;g5{Qma>0s8;@1N#U3`1bw+{{`{+
{{0F11O5O80RjF3_yPa`0{r*_5BmE8`3w352l@g9{{Qy_0Q&?0_3`=w1qAH;^#>LF1poO000933{r~|31N;I04+8f0_5}a|`
U3+3_x}3(0ss#J^zZu!`w8*+`3MpK0{#C10Qvs>1O@*81o#8|3<3E6_6hy|@Cf|<_V)k+|NIRD?)L-!`T_Cv{sH^_0SE#52K
oN~1q1;42>$>31Oxl~00I01_5=m|0RaI4_yhq0?+F3>|NZ;{1N!p%{0aZ~{{Q|3{Qm*}3<d%F0R#&A3JLuP2mk~I2L$>5`vd
v|^AGy|0Rsm70s8j)`~w620|fp51_S*71_1a12LcHD0|@r|_yPX|0SNv5{r>+0_6`OA00RaC`}+C@@cIY)`v(C10t5a2`}qb
30sIF3{0aB>^8xq;0|)&62?GE9^92R@^acO~`Tz6x^!^C@2nGTF?*IM+1oiv_{QwCA0|pTJ`wapC0S^TH4haJR^#cg@0s{a0
`~3m=`vL+41_J>8{QLw3`TGC>`vL>{{{;j6`vnCF{{8*~1_J*22K)N}_yPU^0|4~<{{8*@{RRRB{Pzk500IC4{{RL1{QLj~0
|W>L1o;C62LA!~0s;U1{{{I200aE|1NQv={0IRA1NsOI{{sF1{saR3`1%F?0RI051Nj321Ns2>1pEa40|5U5{|F5I0QvU;`v
wC3|NZ?2{saR92mbyB{QCk0{0RIC|M~#?|Na8{1or;{1qb}}{sI#I1pfd6_XYz600004{{R914*dB8_5l0^1qJ*B{rmp`{{s
L01NZs@0S5W|`3o5Q2n6^8_yq#~00R38|NjI23<K{0?*ID#_X`9E`S=0%{{8_01NZp{{SEx~`wJ5P1OWR2`vn5`4FC571n~<
23IX#1^ac9#>k<J2{PqX_|NRO70Q3X_{0{;3{RI910R;d12Lb~A00jE@4fzTE3I6{C{{Q>?@Cyh900sm9`TqR`{`>v@{tN&5
{Qv9${Rsc~0ty5I{Qd&^3IP581Og2F5B~rI0|^8Q5C;7I`vvm@3j+200s;pG`2O+(`~w5^_6Y$82>S#52LAmA2K@^D{|)^7_
X7J03IYE80s;B}3<CQ60r~$1@&o(~^Y#Yv_Xq+64GaAO^aBnM{Qd_8`vms*@B#V*0Q~;}2?PNC1_Av1`~Cs|?FRP(_5TC;00
jm4_XPR&2J!j}0s#dB2m1^A^AiUO0}TQI4hsVb4f^=^{`Lj>BLm;t4e$#!?hN+O2>tjH3-bos@&g_D9Q+pnBG~3Y3JfX>)UW
Rb8s!$}EAu)B2mR^i3Ev$A91r&K?*{-MEf4g>=kfOo0ssgFTkG6E>h&A=_W9%X2MIya7Y_**9OU5z+W;3900b8M5i-dA0x0n
r?DqK^H3Gm91`pHh7z`2k@E$AH2p|&#5eNJI{_GSO%<~l_!w?xI?z$lj2g?mp_4gFZu?g1v{yjD1+oaABKn^tcFe<bE{vPW4
_tezz>-`=5)&(v8C)of10`Hsv{P_0H@#F9X3kLroF!T5MAq@BgGARDuf4v_M`2qYW00<ZU?(7`WEBXBK68ov=_5j}Y>G13T{
SWf|1_m1Z3Iy)}=m-1sHOd+Y=kpd2{{j&MrtAOB`|AV*)c5NH@&o?!3hWB*{}BT4;OXcm6ZY`z@B8xt=ja*${`LRp`0)=Cyz
}P=|HB|bwgeIN{rLUA_UiY{4h01D;^^*8`~&#E(a^>E!dLJxDew}%_TvfO<~QXc__!HH?Fb>|`}-KL-{lkeBOMgj(fRT_4kH
n+-sJ4|)IHuN===Tz5B&-B-wFZ<2Ko>J64d|&0RR34@&)GN1NS8h`|1J(1rGc11_%NQ1pWmL{{Z~>5Cj4P`WF2B3IY=C@YV<
y4gLrG2_6OI_Uj!B{rUM2{Py?`2>s;*00$KJ00{X01pfs6`~m$A{Pzw11?vI+009j2`uhUz{RIpR008p~0{-_A3jhB5`Um>}
2>1T^{R{*45C8i9{Rsg8_7v~=`v?2@0ulxA`S$(^1PJ{D2@n1H0rvw6{`d$03jPHE0t5i~2L1T{`U438^#%|9{{sUF1pEl?{
Q?UC_5}V23IhoN_W1n=?+F0%0|ou`2Lbl;1q%8E1o#F4{QMFC`2!95008~>`U(yR@&Wk@`v(F60RZ{{`wIL31q1>51_JZ{90
dLa0tf*54gdcH`vVF9@dX3=_W}j}1O@>900#dK0RsgE3Iz!S{{I9J0|Wj30|W*71PcA}4)ym60RILI_zC?1@(2VC1qcEB0R;
9F1qb^B3H1y5?F9Z201Wm50Qd&=2L|==2lE031qA^J1`PHB?*Rq`{R#T~1Pk>F3<mZL2K^iL4;B>I;7-er7QX@K(Gvj?-?0)
N|47^d001Bh;v?4$58fiY|9`Om5BV2c_8RZ>v%G&sFF3r%YDXh$VL!^co=#|1U>{LMQk1J;TC}QzUsXfCt~*gdqLEETwQreM
""",
    inner_step=0.0172159,
    offset_step=0.0945555,
    outer_step=0.0056982,
    offset=-1.54814,
)
